import GattherdConfig
import GattherdHTTP
import GattherdModel
import GattherdSync
import Glibc

/// Changes the files of the configuration for people at the dashboard, one change at a time.
///
/// An invalid change is not written. A change that the daemon cannot use is undone.
final class ConfigurationEditor: Sendable {
    /// A change of the files.
    struct Change: Sendable {
        /// The file, with its new content.
        var source: ConfigSource
        /// The previous content; `nil` for a new file.
        var before: ConfigurationText?
        /// The new file of a secret that the first file names.
        var secret: ConfigSource?
    }

    /// The maximum number of files of a list.
    static let maximumFiles = 1000

    let file: ConfigurationFile
    private let running: RunningConfiguration
    private let changes: PendingChanges
    private let isBusy = Locked(false)

    init(_ file: ConfigurationFile, _ running: RunningConfiguration, _ changes: PendingChanges) {
        (self.file, self.running, self.changes) = (file, running, changes)
    }

    /// Returns the mistakes of the configuration with another content of a file.
    func findings(with source: ConfigSource) -> (findings: [ConfigError], waiting: [String]) {
        let (next, errors) = file.parsedLeniently(with: [source])
        guard errors.isEmpty else { return (errors, []) }
        // Profiles are loaded by reloads only; those in use know the names.
        var findings = next.mismatches(with: running.registry) + next.secretFindings
        // A disk that is unmounted for a while must not prevent changes of devices.
        let path = running.configuration.history.path.value
        if next.history.path.value != path { findings += next.startFindings() }
        return (findings, running.configuration.sectionsThatDiffer(from: next))
    }

    /// Checks a change that adds a file, and that of its secret, which is not there yet.
    ///
    /// - Throws: ``BackendError`` if such files exist, or with the first mistake.
    func checkAddition(_ change: Change) throws(BackendError) {
        let secret = change.secret.flatMap { isNamed($0.name) ? $0.name : nil }
        for path in [change.source.name, secret].compactMap(\.self) {
            guard unsafe access(path, F_OK) != 0 else {
                throw BackendError(.conflict, "\(path) already exists; choose another name")
            }
        }
        let findings = findings(with: change.source).findings.filter { finding in
            change.secret == nil || finding.file != change.source.name || !finding.isAboutNamedFile
        }
        guard !findings.contains(where: { $0.severity == .error }) else { throw BackendError(findings) }
    }

    /// True if the configuration names the file of a secret, which then must not be replaced.
    private func isNamed(_ path: String) -> Bool {
        guard let place = Self.realPath(path) else { return false }
        return [running.configuration, file.parsedLeniently().configuration].contains { configuration in
            let secrets = configuration.devices.flatMap { [$0.pinFile, $0.bindKeyFile, $0.irkFile] }
            let files = [configuration.http?.tokenFile] + secrets + configuration.outputFiles.map(\.file.path)
            return files.contains { $0.map { Self.realPath($0.value) } == place }
        }
    }

    /// Returns the path of a file without symbolic links; `nil` without such a file.
    private static func realPath(_ path: String) -> String? {
        guard let real = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(real) }
        return unsafe String(cString: real)
    }

    /// Runs `body`, which may block, on a thread of its own.
    func onThread<Value: Sendable>(
        _ body: @escaping @Sendable () -> Result<Value, BackendError>
    ) async throws(BackendError) -> Value {
        guard let result = await NamedThread.result(name: "configuration", of: body) else {
            throw BackendError(.unavailable, "the daemon is stopping; try again once it runs")
        }
        return try result.get()
    }

    /// Writes a change and reloads.
    ///
    /// - Returns: The sections whose changes wait for a restart.
    func apply(_ change: Change) async throws(BackendError) -> [String] {
        try begin()
        defer { isBusy.withLock { $0 = false } }
        try await onThread { [self] in Result { () throws(BackendError) in try write(change) } }
        switch await changes.reloaded() {
        case .done(let waiting)?:
            // The files mean the same without an empty one, so no other reload is necessary.
            if deletes(change) { try await onThread { [self] in .success(deleteEmpty(change)) } }
            return waiting
        case .failed(let reason)?:
            try await undo(change)
            throw BackendError(.refused, reason)
        case .unread?:
            try await undo(change)
            throw BackendError(
                .unavailable,
                "the files were not read in time, so the change was taken back; try again later"
            )
        case nil: throw BackendError(.unavailable, "the daemon is stopping; try again once it runs")
        }
    }

    /// True if a change leaves no text in a file other than the main one, so that the file is deleted.
    func deletes(_ change: Change) -> Bool {
        let blanks: [UInt8] = [0x09, 0x0A, 0x0D, 0x20]
        return change.source.name != file.path && change.source.bytes.allSatisfy { blanks.contains($0) }
    }

    /// Deletes the file of a change, unless a person has written into it meanwhile.
    private func deleteEmpty(_ change: Change) {
        let path = change.source.name
        guard (try? file.text(ofPath: path)) == ConfigurationText(bytes: change.source.bytes) else { return }
        try? file.remove(path)
    }

    /// Takes a change back and reloads.
    private func undo(_ change: Change) async throws(BackendError) {
        try await onThread { [self] in Result { () throws(BackendError) in try takeBack(change) } }
        _ = await changes.reloaded()
    }

    /// Reloads the files as they are, and checks that a daemon would start with them.
    func reloadForStart() async throws(BackendError) {
        try begin()
        defer { isBusy.withLock { $0 = false } }
        switch await changes.reloaded() {
        case .done?: try await onThread { [self] in Result { () throws(BackendError) in try checkStart() } }
        case .failed(let reason)?, .unread(let reason)?: throw BackendError(.refused, reason)
        case nil: throw BackendError(.unavailable, "the daemon is stopping; try again once it runs")
        }
    }

    private func checkStart() throws(BackendError) {
        let (next, errors) = file.parsedLeniently(with: [])
        guard errors.isEmpty else { throw BackendError(errors) }
        let findings = next.startFindings(historyInUse: running.configuration.history.path.value)
        guard findings.isEmpty else { throw BackendError(findings) }
    }

    /// Starts a change and sets ``isBusy``.
    private func begin() throws(BackendError) {
        let isFree = isBusy.withLock { isBusy in
            defer { isBusy = true }
            return !isBusy
        }
        guard isFree else { throw BackendError(.unavailable, "another change is being made; try again") }
    }

    private func write(_ change: Change) throws(BackendError) {
        guard let before = change.before else { return try add(change) }
        do throws(FileError) {
            let present = try file.text(ofPath: change.source.name)
            guard present == before else { throw FileError(ESTALE, change.source.name) }
            try file.replace(change.source)
        } catch {
            throw BackendError(writing: error)
        }
    }

    /// Adds a file, after that of its secret: the daemon does not start with a file that names a missing one.
    ///
    /// The secret of a deleted device is replaced.
    private func add(_ change: Change) throws(BackendError) {
        if let secret = change.secret {
            let isNamed = isNamed(secret.name)
            try adding(secret.name) { () throws(GatewayError) in try file.addSecret(secret, replacesOld: !isNamed) }
        }
        do throws(BackendError) {
            try adding(change.source.name) { () throws(GatewayError) in try file.add(change.source) }
        } catch {
            if let secret = change.secret { unsafe unlink(secret.name) }
            throw error
        }
    }

    private func adding(_ path: String, _ add: () throws(GatewayError) -> Void) throws(BackendError) {
        do throws(GatewayError) { try add() } catch {
            let exists = unsafe access(path, F_OK) == 0
            throw BackendError(exists ? .conflict : .forbidden, error.message)
        }
    }

    /// Undoes a change, unless a person has changed the file during the reload.
    private func takeBack(_ change: Change) throws(BackendError) {
        let present = try? file.text(ofPath: change.source.name)
        guard present == ConfigurationText(bytes: change.source.bytes) else {
            let isDeleted = unsafe access(change.source.name, F_OK) != 0
            if isDeleted, let secret = change.secret { unsafe unlink(secret.name) }
            return
        }
        defer { if let secret = change.secret { unsafe unlink(secret.name) } }
        guard let before = change.before else {
            unsafe unlink(change.source.name)
            return
        }
        do throws(FileError) {
            try file.replace(ConfigSource(name: change.source.name, bytes: before.bytes))
        } catch {
            throw BackendError(writing: error)
        }
    }
}

extension ConfigError {
    /// True for a mistake in a file that the configuration names, or in its permissions.
    fileprivate var isAboutNamedFile: Bool {
        switch problem {
        case .file, .exposedSecret: true
        default: false
        }
    }
}

extension BackendError {
    init(writing error: FileError) {
        switch error.code {
        case ENOENT: self.init(.notFound, "there is no file \(error.path)")
        case EEXIST: self.init(.conflict, "\(error.path) is there already; choose another name")
        case ESTALE: self.init(.conflict, "\(error.path) was changed meanwhile; read it again")
        case EFBIG:
            self.init(.refused, "\(error.path) is larger than \(ConfigurationText.largest) bytes; edit it on the host")
        default:
            let advice = "see 'Change the configuration' in docs/operate.md"
            self.init(.forbidden, "\(error.path) cannot be written: \(error.reason); \(advice)")
        }
    }

    /// Creates the error about a configuration that would be wrong, with its first mistake.
    init(_ findings: [ConfigError]) {
        let errors = findings.filter { $0.severity == .error }
        let first = errors.first.map { $0.description.split(separator: "\n").first ?? "" } ?? ""
        let more = errors.count > 1 ? " (and \(errors.count - 1) more)" : ""
        self.init(.refused, first + more)
    }
}
