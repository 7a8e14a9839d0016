// Apart from CLinux: dl_iterate_phdr needs _GNU_SOURCE, which changes types that Swift's Glibc has otherwise.
#define _GNU_SOURCE
#include "CProgramMemory.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

// Whether pages are the file's own, as far as they are there: what the loader, a debugger or a probe has written
// into is a private copy. Entries of /proc/PID/pagemap: 63 is present, 62 swapped out, 61 a file's or shared.
static bool are_files_own(int pagemap, uintptr_t first, size_t count, uint64_t *entries) {
    size_t length = count * sizeof *entries;
    if (pread(pagemap, entries, length, (off_t)(first * sizeof *entries)) != (ssize_t)length) return false;
    for (size_t index = 0; index < count; index++)
        if (entries[index] >> 62 && entries[index] >> 61 != 5) return false;
    return true;
}

// One object's parts that are only read, without the pages that they may share with others.
static int release_segments(struct dl_phdr_info *object, size_t size, void *pagemap) {
    enum { step = 512 };
    uint64_t entries[step];
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)size;
    for (int index = 0; index < object->dlpi_phnum; index++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[index];
        if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        uintptr_t end = (start + segment->p_filesz) / page;
        for (uintptr_t first = (start + page - 1) / page; first < end; first += step) {
            size_t count = end - first < step ? end - first : step;
            if (are_files_own(*(int *)pagemap, first, count, entries))
                madvise((void *)(first * page), count * page, MADV_DONTNEED);
        }
    }
    return 0;
}

// The list of objects is locked meanwhile.
static void release_code(void) {
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return;
    dl_iterate_phdr(release_segments, &pagemap);
    close(pagemap);
}

// The allocator keeps what was free once between what is in use; of all its arenas, whole pages of that go back.
void program_memory_release(void) {
    malloc_trim(0);
    release_code();
}

// 128 KiB is what the allocator begins with. Left alone it raises that to the largest block that was ever freed, and from
// then on such blocks stay in its arenas, with small ones between them that hold them there.
void program_memory_return_large_blocks(void) { mallopt(M_MMAP_THRESHOLD, 128 * 1024); }
