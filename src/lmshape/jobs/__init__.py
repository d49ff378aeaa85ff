"""What every job of the workflow does beside its work: claim a device, and say when its code is stale."""
