//! Finding entries: by pattern, prefix, tags, author and time, in pages that stay right.
