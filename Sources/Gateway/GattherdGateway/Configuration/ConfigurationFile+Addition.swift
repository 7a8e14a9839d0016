import CLinux
package import GattherdConfig
import Glibc

extension ConfigurationFile {
    /// Returns the path of a file in the folder of further files.
    package func fragment(named name: String) -> String { fragmentFolder + "/" + name + ".yaml" }

    /// Writes a new file into the folder of further files, which is made if it is missing.
    ///
    /// The file and the folder get the owner and the group of the main file, and its permissions, without those of
    /// other users to write.
    ///
    /// - Throws: ``GatewayError`` if the file exists, or cannot be written.
    package func add(_ source: ConfigSource) throws(GatewayError) {
        let model = try owner()
        if unsafe mkdir(fragmentFolder, 0o750) == 0 {
            adopt(fragmentFolder, model, mode: model.st_mode & 0o755 | (model.st_mode & 0o444) >> 2)
        }
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = unsafe open(source.name, flags, 0o600)
        guard descriptor >= 0 else { throw Self.failure(source.name, errno) }
        defer { close(descriptor) }
        guard Self.write(source.bytes, to: descriptor), fsync(descriptor) == 0 else {
            let code = errno
            unsafe unlink(source.name)
            throw Self.failure(source.name, code)
        }
        adopt(source.name, model, mode: model.st_mode & 0o644)
    }

    private func owner() throws(GatewayError) -> stat {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw Self.failure(path, errno) }
        return status
    }

    /// Gives a new file or folder the owner of the main file; a failure leaves it to this user.
    private func adopt(_ path: String, _ model: stat, mode: mode_t) {
        guard unsafe chown(path, model.st_uid, model.st_gid) == 0 || geteuid() == model.st_uid else { return }
        unsafe chmod(path, mode)
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private static func failure(_ path: String, _ code: Int32) -> GatewayError {
        guard code != EEXIST else {
            return GatewayError(.cannotCreate, "\(path) already exists; choose another name for the device")
        }
        let reason = unsafe String(cString: strerror(code))
        let advice = code == EACCES ? "; run the command as root" : ""
        return GatewayError(.cannotCreate, "\(path) cannot be written: \(reason)\(advice)")
    }
}
