import GattherdModel
import Glibc

/// Waits until written data is on the disk.
enum FileSync {
    static func file(_ path: String) throws(StoreFault) {
        try sync(path, flags: O_RDONLY)
    }

    /// Syncs the directory of `path`, so that its file names are durable.
    static func directory(of path: String) throws(StoreFault) {
        try sync(path.directoryPath, flags: O_RDONLY | O_DIRECTORY)
    }

    private static func sync(_ path: String, flags: Int32) throws(StoreFault) {
        let descriptor = unsafe open(path, flags | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreFault(errno: errno, "cannot open", path: path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StoreFault(errno: errno, "cannot sync", path: path) }
    }
}

extension String {
    /// Returns the directory of a path.
    var directoryPath: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }
}
