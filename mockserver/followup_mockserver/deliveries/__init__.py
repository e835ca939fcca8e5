"""Webhook deliveries: queued, attempted over a socket or in this process, and recorded."""
