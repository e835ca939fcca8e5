"""The ten groups of operations, one file each."""
