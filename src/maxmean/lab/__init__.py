"""The laboratory: experiments as data, from settings to shards to tables to figures to claims to a report."""
