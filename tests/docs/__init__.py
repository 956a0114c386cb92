"""The sessions in the documents, run against a real server."""
