#pragma once

// Unmaps what is only read of the program and its libraries; the next use maps it again from the kernel's page cache.
void program_code_release(void);
