"""Which tests tell which scenario of the group engine.

Most run on the engine with a virtual clock; those of ``WIRE`` are told over a
socket too. A new scenario gets a row here.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
LAST = 87
INSERTED = ["36a", "37a", "52a", "52b", "52c", "52d", "61a", "73a"]
ON_THE_WIRE = ("scenarios/test_wire.py", "scenarios/test_wire_claims.py")
WIRE = ["17", "25", "52b", "52c", "52d", "53", "66", "69", "70", "71"]

TABLE = """
scenarios/test_claim_and_order.py
  1    a_new_group_starts_at_its_cursor_and_handing_out_finishes_nothing
  2    nothing_past_the_tail_goes_out
  3    two_polls_never_share_an_entry
  4    a_claim_lapses_at_its_deadline_and_not_before
  5    an_acked_entry_never_returns
  6    owed_goes_before_new_lowest_id_first
  7    two_groups_each_see_everything
  8    an_empty_stream_gives_an_empty_success
  9    claims_lapse_by_deadline_not_by_id
  10   every_way_of_ending_a_claim_removes_its_deadline
  10   a_claim_taken_over_leaves_only_the_new_deadline
  10   a_delayed_nack_leaves_only_the_end_of_the_delay
  11   a_random_mix_of_ack_nack_and_abandon_finishes_every_entry_exactly_once
  12   a_polls_own_visibility_overrides_the_default
  13   the_next_deadline_is_the_earliest_one
scenarios/test_cursor.py
  14   the_cursor_stops_at_a_gap
  15   closing_the_gap_jumps_over_all_that_is_acked
  16   an_out_of_order_ack_is_not_redelivered_when_lower_claims_lapse
  17   a_restart_resumes_at_the_cursor_and_redelivers_only_what_was_not_acked
  18   a_duplicate_ack_moves_nothing
  19   an_ack_below_the_cursor_is_inert
  20   acks_in_any_order_never_move_the_cursor_back
  21   an_ack_lost_with_its_commit_was_never_answered_and_the_entry_returns
scenarios/test_settling.py
  22   a_late_ack_after_redelivery_finishes_the_entry_once
  23   an_ack_while_owed_finishes_the_entry
  23   an_ack_after_a_nack_finishes_the_entry
  24   a_nack_after_an_ack_does_nothing
  25   a_nack_owes_at_once_and_wakes_a_waiter
  26   an_ack_or_nack_past_the_tail_changes_nothing_and_the_entry_still_comes
  27   a_settle_of_a_written_but_never_handed_out_entry_changes_nothing
  27   after_a_crash_an_ack_up_to_the_tail_found_at_start_is_accepted
  28   claims_from_before_a_restart_still_settle_in_any_order
  29   a_receipt_from_before_a_redelivery_is_refused_by_ack_nack_and_extend
  30   a_forged_or_another_groups_receipt_is_refused
scenarios/test_attempts_and_dead_letters.py
  31   with_a_bound_of_n_the_entry_is_delivered_n_times_then_listed_dead
  32   nack_lapse_and_delayed_nack_all_count_and_silent_does_not
  33   the_attempts_are_reported_and_rise
  34   the_group_progresses_past_poison
  35   a_dead_entry_is_still_readable_in_the_stream
  36   an_undelivered_claim_costs_no_attempt
  36   what_the_byte_cut_leaves_out_costs_no_attempt
  36   an_undelivered_noack_poll_loses_its_entries_as_in_redis
  36a  the_textbook_worker_sees_poison_dead_lettered_after_the_bound
  36a  a_worker_that_reads_new_then_its_history_is_charged_once
  37   a_crash_at_any_point_leaves_an_entry_listed_or_owed_never_neither
  37a  an_ack_of_a_dead_letter_with_cause_attempts_takes_it_off_the_list
  37a  an_ack_of_a_dead_letter_after_fatal_answers_0_and_leaves_it_listed
scenarios/test_redrive_and_discard.py
  38   a_redriven_entry_goes_out_with_attempts_from_one_and_the_cursor_unmoved
  39   finishing_a_redriven_entry_leaves_the_cursor
  40   what_is_in_play_or_never_delivered_cannot_be_redriven
  41   a_dead_letter_above_a_gap_can_be_redriven_and_the_cursor_waits_for_it
  42   a_redriven_entry_is_still_owed_after_a_restart_and_unlisted
  43   a_finished_redrive_does_not_return_after_a_restart
  44   failing_again_lists_it_once_more_and_counts_the_redrive
  45   double_redrive_and_discard_of_a_redriven_entry_are_refused
  46   a_nack_of_a_redriven_entry_owes_it_at_once
scenarios/test_claim_control.py
  47   an_extended_claim_outlives_the_visibility_timeout_then_lapses
  48   extend_of_a_lapsed_settled_or_delayed_claim_is_refused
  49   a_delayed_nack_is_not_early_and_holds_a_place_under_the_cap
  49   a_delayed_entry_cannot_be_extended_or_reclaimed_and_is_not_history
  50   backoff_follows_the_groups_policy_with_its_cap
  50   autoclaim_and_claim_do_not_take_a_delayed_entry_early
  51   a_consumers_dead_letter_is_listed_with_its_reason_finished_redrivable
  51   a_fatal_nack_of_a_finished_entry_is_refused_and_nothing_is_written
  52   values_over_the_cap_are_capped_and_the_grant_is_reported
  52a  a_members_own_claim_of_what_it_holds_costs_no_attempt
  52b  a_claim_that_follows_its_connection_outlives_ten_visibility_timeouts
  52c  with_a_disconnect_grace_of_0_a_killed_workers_entries_are_owed_at_once
  52d  a_clean_restart_keeps_standing_claims_and_receipts
scenarios/test_members.py
  53   a_restarted_member_gets_its_own_claims_first
  54   without_reclaim_a_named_poll_takes_new_entries
  55   another_user_with_the_name_takes_nothing
  56   a_second_reclaim_on_a_connection_is_an_ordinary_poll
  57   an_older_connection_never_takes_from_a_newer_one
  58   the_remainder_stays_reserved_across_polls_and_through_a_byte_cut
  59   a_reserved_entry_that_lapses_goes_to_all_and_is_not_given_twice
  60   reclaim_works_at_a_full_cap
  61a  an_autoclaim_with_a_min_idle_of_ten_minutes_lifts_the_visibility_to_that
scenarios/test_limits_and_waiting.py
  62   1001_asked_gives_1000_then_the_rest
  63   a_poll_stops_at_four_mebibytes_and_keeps_the_entry_that_crosses
  63   one_larger_entry_still_goes_alone
  64   the_cap_answers_empty_and_counts
  64   an_ack_frees_the_cap_and_wakes_who_waits
  64   a_nack_frees_the_cap_and_freed_room_goes_to_owed_first
  64   a_lapse_frees_the_cap_and_freed_room_goes_to_owed_first
  65   filling_the_cap_exactly_is_not_capped
  66   a_waiter_is_woken
  67   an_event_between_read_and_wait_is_in_the_changes_that_wake
  68   a_waiter_woken_for_nothing_waits_on_and_owes_nothing
  69   n_entries_at_once_serve_n_waiters_a_different_one_each
  70   a_waiter_whose_client_is_gone_gets_nothing_and_blocks_nobody
scenarios/test_admin.py
  72   seek_back_replays
  72   seek_forward_skips
  73a  setid_keeps_pending_entries_and_dead_letters
  73a  setid_forward_finishes_what_it_jumps
  73a  setid_backward_replays_what_was_acked
  74   an_ack_from_before_a_seek_is_refused_and_the_entry_redelivered
  75   an_ack_racing_a_seek_cannot_move_the_new_cursor
  76   seek_keeps_dead_letters_and_does_not_replay_them
  76   destroy_removes_dead_letters
  77   a_recreated_group_inherits_nothing_not_even_from_late_acks
  77   a_recreated_stream_inherits_nothing
  78   other_groups_are_untouched_whatever_bytes_their_names_are_made_of
  79   the_counts_equal_a_recount_and_a_lapsed_claim_counts_as_owed
  80   pause_holds_polls_not_settles
scenarios/test_holes.py
  81   trimmed_entries_are_skipped_and_counted_and_the_cursor_moves
  82   skipped_before_is_right_across_polls_and_redeliveries
  83   a_cursor_far_below_the_oldest_entry_jumps_once
scenarios/test_whole_runs.py
  86   in_a_run_without_faults_no_delivery_starts_after_its_ack_returned
  87   under_random_kills_every_entry_is_accounted_for_and_no_ack_is_forgotten
scenarios/test_wire.py
  17   a_killed_server_resumes_at_the_cursor_and_redelivers_only_what_was_not_acked
  37   a_crash_leaves_an_entry_listed_or_owed_never_neither
  66   an_append_wakes_a_waiter
  66   a_lapse_wakes_a_waiter
  66   a_redrive_wakes_a_waiter
  66   an_ack_at_the_cap_wakes_a_waiter
  68   the_end_of_the_wait_is_empty_however_often_it_was_woken
  69   one_exec_of_n_entries_serves_n_waiters_a_different_one_each
  70   a_waiter_whose_client_is_gone_gets_nothing_and_blocks_nobody
  71   a_thousand_idle_waiters_cost_nothing
scenarios/test_wire_claims.py
  25   a_nack_owes_at_once_and_wakes_a_waiter
  52b  a_claim_follows_its_connections_and_lapses_after_the_last_one
  52c  with_a_disconnect_grace_of_0_a_killed_workers_entries_are_owed_at_once
  52d  a_clean_restart_keeps_standing_claims_and_receipts
  53   a_restarted_member_gets_its_own_claims_first_and_others_stay_untouched
  66   the_end_of_a_delay_wakes_a_waiter
  66   a_seek_or_a_resume_wakes_a_waiter
  68   a_wait_of_xpoll_ends_at_the_groups_longest_with_an_empty_array
commands/test_polling.py
  61   a_refused_poll_changes_nothing
  61   names_may_have_1_to_128_bytes_of_any_kind
storage/test_eviction.py
  85   an_idle_group_is_dropped_from_memory_and_rebuilt
  85   a_group_with_a_claim_is_kept
  85   a_group_with_a_delay_is_kept
  85   a_group_somebody_may_wait_for_is_kept_until_the_client_is_gone
server/test_cold.py
  84   an_unreadable_record_is_skipped_and_the_next_delivered_in_the_same_poll
commands/test_groups.py
  73   a_refused_xgroup_changes_nothing
"""


def rows() -> list[tuple[str, str, str]]:
    """Number, file, test."""
    found, file = [], ""
    for line in TABLE.split("\n"):
        words = line.split()
        if len(words) == 1:
            file = words[0]
        elif words:
            found.append((words[0], file, f"test_{words[1]}"))
    return found


def test_each_row_names_a_test_that_exists() -> None:
    for _, file, test in rows():
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        defined = {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }

        assert test in defined, f"{file}::{test}"


def test_every_scenario_has_a_test() -> None:
    wanted = [*map(str, range(1, LAST + 1)), *INSERTED]

    told = {number for number, _, _ in rows()}

    assert [number for number in wanted if number not in told] == []
    assert [number for number in told if not re.fullmatch(r"\d+[a-d]?", number)] == []


def test_what_needs_a_socket_is_told_over_one() -> None:
    told = {number for number, file, _ in rows() if file in ON_THE_WIRE}

    assert [number for number in WIRE if number not in told] == []
