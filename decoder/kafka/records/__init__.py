"""Record batches and message sets: headers, checksums, compression, and the records one by one."""
