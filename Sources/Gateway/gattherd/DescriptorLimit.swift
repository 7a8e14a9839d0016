import Glibc

/// The limit of open files of this process.
struct DescriptorLimit {
    /// The number of files that a daemon opens at its start and for its first links.
    private static let needed = 128

    /// The number of files that may still be opened.
    private let room: Int

    /// Reads the limit, after raising one that is too low as far as the system permits.
    static func raised() -> DescriptorLimit {
        let open = openFiles
        let wanted = rlim_t(open + needed)
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard unsafe getrlimit(resource, &limit) == 0 else { return DescriptorLimit(room: .max) }
        if limit.rlim_cur < wanted, limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = min(wanted, limit.rlim_max)
            _ = unsafe (setrlimit(resource, &limit), getrlimit(resource, &limit))
        }
        return DescriptorLimit(room: max(0, Int(clamping: limit.rlim_cur) - open))
    }

    /// Checks that there are enough files for a daemon.
    ///
    /// - Throws: ``CommandFailure`` with the remedy.
    func expectRoom() throws(CommandFailure) {
        guard room < Self.needed else { return }
        throw CommandFailure(
            .cannotCreate,
            "gattherd: only \(room) more files can be opened, and the daemon needs \(Self.needed); "
                + "raise LimitNOFILE= of the service, or run: ulimit -n 1024"
        )
    }

    /// The number of open files, which are the standard ones if the kernel does not list them.
    private static var openFiles: Int {
        guard let folder = unsafe opendir("/proc/self/fd") else { return 3 }
        defer { unsafe closedir(folder) }
        var count = 0
        while unsafe readdir(folder) != nil { count += 1 }
        // Without `.`, `..` and the descriptor of the folder.
        return max(3, count - 3)
    }
}
