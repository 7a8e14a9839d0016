import GattherdModel
import Glibc

/// Waits until what was written is on the disk.
enum FileSync {
    static func file(_ path: String) throws(StoreFault) {
        try sync(path, flags: O_RDONLY)
    }

    /// Makes sure of the names in the directory that `path` names a file in.
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
    /// The directory that a path names a file in.
    var directoryPath: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }
}
