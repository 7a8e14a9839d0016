import CLinux
package import GattherdConfig
import GattherdSync
import Glibc

extension ConfigurationFile {
    /// Returns the path of a file in the folder of further files.
    package func fragment(named name: String) -> String { fragmentFolder + "/" + name + ".yaml" }

    /// Returns the value of a key that names a file in the folder of the configuration or below it.
    ///
    /// The value is relative to that folder, so that it stays right if the folder is copied or restored elsewhere.
    package func value(naming path: String) -> String {
        let folder = self.path.lastIndex(of: "/").map { self.path[...$0] } ?? ""
        return path.hasPrefix(folder) ? String(path.dropFirst(folder.count)) : path
    }

    /// Writes a new file into the folder of further files, which is made if it is missing.
    ///
    /// The file and the folder get the owner and the group of the main file, and its permissions, without those of
    /// other users to write. Both are renamed into place when they are complete, so the daemon never finds an
    /// unreadable one.
    ///
    /// - Throws: ``GatewayError`` if the file exists, or cannot be written.
    package func add(_ source: ConfigSource) throws(GatewayError) {
        let model = try owner()
        do throws(FileError) {
            try makeFragmentFolder(model)
            // Names with a dot at the start are not read.
            let draft = try FileDraft(of: source.name, prefix: ".")
            try draft.write(source.bytes)
            try Self.adopt(draft.descriptor, source.name, model, mode: model.st_mode & 0o644)
            try draft.create()
        } catch {
            throw Self.failure(source.name, error.code)
        }
    }

    /// Writes a file into the folder of further files: a new one as ``add(_:)`` does, else another content of it.
    ///
    /// - Parameters:
    ///   - source: The file.
    ///   - before: The content from which the new one was made; `nil` for a new file.
    /// - Throws: ``GatewayError`` if the file cannot be written, or was changed meanwhile.
    package func set(_ source: ConfigSource, replacing before: [UInt8]?) throws(GatewayError) {
        guard let before else { return try add(source) }
        do throws(FileError) {
            guard try text(ofPath: source.name).bytes == before else { throw FileError(ESTALE, source.name) }
            try replace(source)
        } catch {
            throw Self.failure(source.name, error.code)
        }
    }

    /// Deletes a file of the folder of further files.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - content: Its content.
    /// - Throws: ``GatewayError`` if the file cannot be deleted, or was changed meanwhile.
    package func delete(_ path: String, with content: [UInt8]) throws(GatewayError) {
        do throws(FileError) {
            guard try text(ofPath: path).bytes == content else { throw FileError(ESTALE, path) }
            try remove(path)
        } catch {
            throw Self.failure(path, error.code)
        }
    }

    /// Makes the folder of further files if it is missing, then writes a secret, which only the daemon can read.
    ///
    /// - Parameters:
    ///   - source: The secret with its path.
    ///   - replacesOld: True to replace a file at that path.
    /// - Throws: ``GatewayError`` if the file exists and is not to be replaced, or cannot be written.
    func addSecret(_ source: ConfigSource, replacesOld: Bool) throws(GatewayError) {
        let model = try owner()
        do throws(FileError) {
            try makeFragmentFolder(model)
            let draft = try FileDraft(of: source.name, prefix: ".")
            try draft.write(source.bytes)
            if replacesOld { try draft.replace() } else { try draft.create() }
        } catch {
            throw Self.failure(source.name, error.code)
        }
    }

    private func owner() throws(GatewayError) -> stat {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw Self.failure(path, errno) }
        return status
    }

    private func makeFragmentFolder(_ model: stat) throws(FileError) {
        guard unsafe access(fragmentFolder, F_OK) != 0 else { return }
        let draft = fragmentFolder + ".part"
        unsafe rmdir(draft)
        guard unsafe mkdir(draft, 0o700) == 0 else { throw FileError(errno, draft) }
        defer { unsafe rmdir(draft) }
        let descriptor = unsafe open(draft, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError(errno, draft) }
        defer { close(descriptor) }
        try Self.adopt(descriptor, draft, model, mode: model.st_mode & 0o755 | (model.st_mode & 0o444) >> 2)
        guard unsafe rename(draft, fragmentFolder) == 0 else { throw FileError(errno, fragmentFolder) }
        try FileDraft.syncFolder(of: fragmentFolder)
    }

    /// Gives a new file or folder the owner and the permissions of the main file.
    ///
    /// Without the right to give files away, it keeps its owner and gets the group only.
    ///
    /// - Throws: ``FileError`` if a user who can read the main file could not read this one.
    private static func adopt(_ descriptor: Int32, _ path: String, _ model: stat, mode: mode_t) throws(FileError) {
        let isOwned = fchown(descriptor, model.st_uid, model.st_gid) == 0
        let isShared = isOwned || (mode & S_IRGRP != 0 && fchown(descriptor, uid_t.max, model.st_gid) == 0)
        guard isShared || mode & S_IROTH != 0 else { throw FileError(errno, path) }
        guard fchmod(descriptor, mode) == 0 else { throw FileError(errno, path) }
    }

    private static func failure(_ path: String, _ code: Int32) -> GatewayError {
        guard code != EEXIST else {
            return GatewayError(.cannotCreate, "\(path) already exists; choose another name")
        }
        guard code != ESTALE else {
            return GatewayError(.cannotCreate, "\(path) was changed meanwhile; run the command again")
        }
        let reason = SystemError(code).description
        let advice = code == EACCES || code == EPERM ? "; run the command as root" : ""
        return GatewayError(.cannotCreate, "\(path) cannot be written: \(reason)\(advice)")
    }
}
