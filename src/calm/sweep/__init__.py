"""Many runs from one file: planned, shared out over processes or a cluster, resumed, compared."""
