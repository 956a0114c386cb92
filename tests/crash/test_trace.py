"""The reader of strace's output: it must notice a reply that left too early."""

from __future__ import annotations

from tests.crash.trace import Trace

FILE = "5</data/journal>"
CLIENT = "7<TCP:[127.0.0.1:6379->127.0.0.1:50001]>"
REQUEST = f'1 recvfrom({CLIENT}, "XADD", 9, 0, NULL, NULL) = 4'
WRITE = f'1 pwritev({FILE}, [{{iov_base="\\0a;\\1", iov_len=4}}], 1, 512) = 4'
SYNC = f"1 fdatasync({FILE}) = 0"
ANSWER = f'1 sendto({CLIENT}, "$3\\r\\n1-0\\r\\n", 9, 0, NULL, 0) = 9'
PONG = f'1 sendto({CLIENT}, "+PONG\\r\\n", 7, 0, NULL, 0) = 7'


def early(*lines: str) -> tuple[list[str], list[str]]:
    trace = Trace([PONG, *lines])
    return (
        list(trace.early_entries({b"1-0": b"a;"})),
        list(trace.early_replies({50001})),
    )


def test_a_reply_after_the_sync_of_its_bytes_is_in_order() -> None:
    assert early(REQUEST, WRITE, SYNC, ANSWER) == ([], [])


def test_a_reply_before_the_sync_is_noticed() -> None:
    entries, replies = early(REQUEST, WRITE, ANSWER, SYNC)

    assert entries == ["line 3: 1-0 was not yet durable"]
    assert len(replies) == 1


def test_a_reply_without_a_write_is_noticed() -> None:
    entries, replies = early(WRITE, SYNC, REQUEST, SYNC, ANSWER)

    assert entries == []
    assert len(replies) == 1


def test_a_sync_of_another_file_does_not_count() -> None:
    other = SYNC.replace("/data/journal", "/data/data.mdb")

    entries, replies = early(REQUEST, WRITE, other, ANSWER)

    assert len(entries) == len(replies) == 1


def test_a_failed_sync_does_not_count() -> None:
    failed = SYNC.replace("= 0", "= -1 EIO (Input/output error)")

    entries, replies = early(REQUEST, WRITE, failed, ANSWER)

    assert len(entries) == len(replies) == 1


def test_a_sync_that_began_before_the_write_does_not_count() -> None:
    started = f"2 fdatasync({FILE} <unfinished ...>"
    finished = "2 <... fdatasync resumed>) = 0"

    entries, replies = early(REQUEST, started, WRITE, finished, ANSWER)

    assert len(entries) == len(replies) == 1


def test_a_sync_that_another_thread_made_in_time_counts() -> None:
    started = f"2 fdatasync({FILE} <unfinished ...>"
    finished = "2 <... fdatasync resumed>) = 0"

    assert early(REQUEST, WRITE, started, finished, ANSWER) == ([], [])


ID = "\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0\\0\\0\\0\\0\\0"  # 1-0
ADDED = f'1 pwritev({FILE}, [{{iov_base="{ID}a;", iov_len=18}}], 1, 512) = 18'
ACKED = f'1 pwritev({FILE}, [{{iov_base="{ID}", iov_len=16}}], 1, 1024) = 16'
OTHER = f'1 pwritev({FILE}, [{{iov_base="x", iov_len=1}}], 1, 2048) = 1'
ONE = f'1 sendto({CLIENT}, ":1\\r\\n", 4, 0, NULL, 0) = 4'


def early_acks(*lines: str) -> list[str]:
    trace = Trace([PONG, ADDED, SYNC, REQUEST, *lines])
    return list(trace.early_acks({50001: [b"1-0"]}, [b"a;"]))


def test_the_answer_to_an_ack_after_the_sync_of_its_record_is_in_order() -> None:
    assert early_acks(ACKED, SYNC, ONE) == []


def test_an_ack_answered_after_the_sync_of_something_else_is_noticed() -> None:
    noticed = ["line 6: the ack of 1-0"]

    assert early_acks(OTHER, SYNC, ONE, ACKED, SYNC) == noticed
    assert early_acks(OTHER, SYNC, ONE) == noticed
