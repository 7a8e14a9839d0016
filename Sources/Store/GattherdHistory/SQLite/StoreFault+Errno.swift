import GattherdModel
import Glibc

extension StoreFault {
    /// Creates the fault of a system call that failed with `errno`.
    init(errno code: Int32, _ action: String, path: String) {
        let remedy =
            switch code {
            case ENOENT, ENOTDIR: "; create the directory, or choose another history.path"
            case EACCES, EPERM: "; let this user write to the directory, or choose another history.path"
            case EROFS: "; mount the file system writable, or choose another history.path"
            case ENOSPC, EDQUOT: "; free some space on the disk"
            default: ""
            }
        self.init("\(path): \(action): \(unsafe String(cString: strerror(code)))\(remedy)", Kind(errno: code))
    }
}

extension StoreFault.Kind {
    init(errno code: Int32) {
        self =
            switch code {
            case ENOSPC, EDQUOT: .full
            case EIO, EROFS: .disk
            case EINTR, ENFILE, EMFILE, ENOMEM: .busy
            default: .refused
            }
    }
}
