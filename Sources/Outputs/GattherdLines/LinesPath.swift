import GattherdOutputs
import GattherdSync
import Glibc

/// The path of the output, and the messages about its errors.
struct LinesPath: Sendable {
    enum Kind {
        /// A regular file, or no file yet.
        case file
        case pipe
        case other
    }

    let path: String

    init(_ path: String) {
        self.path = path
    }

    var kind: Kind {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return .file }
        switch status.st_mode & S_IFMT {
        case S_IFREG: return .file
        case S_IFIFO: return .pipe
        default: return .other
        }
    }

    /// The path without symbolic links; the same path if nothing is there.
    var resolved: String {
        guard let real = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(real) }
        return unsafe String(cString: real)
    }

    /// The folder of the file, ending with a slash.
    var folder: String { path.lastIndex(of: "/").map { String(path[...$0]) } ?? "./" }

    /// The reason why the path is not writable, as far as it is known without opening it.
    var problem: String? {
        if kind == .other { return notAFile.detail }
        var status = stat()
        guard unsafe stat(folder, &status) != 0 else { return nil }
        return fault(errno).detail
    }

    /// The fault of a path that is neither a file nor a pipe.
    var notAFile: OutputFault {
        let advice = "name a file, for example \(path.hasSuffix("/") ? path : path + "/")gattherd.jsonl"
        return OutputFault(.misconfigured, "'\(path)' is neither a file nor a named pipe; \(advice)")
    }

    /// Returns the fault of an operation on the path that failed with `code`.
    func fault(_ code: Int32) -> OutputFault {
        guard code != EISDIR else { return notAFile }
        let reason = SystemError(code).description
        let (kind, advice): (OutputFault.Kind, String) =
            switch code {
            case ENOENT, ENOTDIR: (.misconfigured, "make its folder: mkdir -p '\(folder)'")
            case EACCES, EPERM: (.misconfigured, "let the user of gattherd write there: chown gattherd '\(folder)'")
            case EROFS:
                (
                    .misconfigured,
                    "choose another folder, or allow it: systemctl edit gattherd, [Service] ReadWritePaths=\(folder)"
                )
            case ELOOP, ENAMETOOLONG, EFBIG, ENODEV: (.misconfigured, "choose another path")
            case ENOSPC, EDQUOT: (.unavailable, "free some space")
            default: (.unavailable, "check the file system")
            }
        return OutputFault(kind, "'\(path)' cannot be written: \(reason); \(advice)")
    }
}
