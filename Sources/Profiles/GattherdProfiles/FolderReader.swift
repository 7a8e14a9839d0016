import Glibc

/// Reads folders and small files.
enum FolderReader {
    /// Returns the names in a folder, sorted.
    static func names(in path: String) throws(FileFault) -> [String] {
        guard let folder = unsafe opendir(path) else { throw FileFault() }
        defer { unsafe closedir(folder) }
        var names: [String] = []
        while let entry = unsafe readdir(folder) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { raw in
                unsafe String(cString: UnsafeRawPointer(raw).assumingMemoryBound(to: CChar.self))
            }
            names.append(name)
        }
        return names.sorted()
    }

    /// Returns the bytes of a file from `start` on, at most `limit` + 1.
    static func octets(of path: String, from start: UInt64 = 0, limit: Int) throws(FileFault) -> [UInt8] {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw FileFault() }
        defer { close(file) }
        guard start == 0 || lseek(file, off_t(clamping: start), SEEK_SET) >= 0 else { throw FileFault() }
        var octets: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while octets.count <= limit {
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw FileFault() }
            if count == 0 { break }
            octets.append(contentsOf: chunk[..<count])
        }
        return Array(octets.prefix(limit + 1))
    }
}

/// The error of a failed system call.
struct FileFault: Error, Hashable, CustomStringConvertible {
    let code: Int32

    init(_ code: Int32 = errno) {
        self.code = code
    }

    /// The command or the change that makes the file at `path` readable.
    func remedy(for path: String) -> String {
        switch code {
        case EACCES: "Run: chmod o+r '\(path)'"
        case ENOENT: "Correct the link or remove it"
        default: "Copy the file again or remove it"
        }
    }

    var description: String {
        switch code {
        case ENOENT: "there is no such file or folder"
        case EACCES: "permission denied"
        default: unsafe String(cString: strerror(code))
        }
    }
}
