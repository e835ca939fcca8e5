"""What one tenant is and holds, and the collections, queues and records that it is made of."""
