#pragma once

// Unmaps what is only read of the program and its libraries, which the next use maps again from the kernel's page cache,
// and gives back what the allocator has free.
void program_memory_release(void);

// Blocks of 128 KiB and more go back when they are freed.
void program_memory_return_large_blocks(void);
