// This room's door.
