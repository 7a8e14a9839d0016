import GattherdConfig
import GattherdDaemon
import GattherdHTTP
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdProfiles
import GattherdSync

/// Reads the configuration again while the daemon runs.
struct ReloadService: Sendable {
    private typealias ReadFiles = Result<ReloadedConfiguration, GatewayError>

    private let running: RunningConfiguration
    private let updater: GatewayUpdater
    private let enrolment: EnrolmentService
    private let recorder: EventRecorder
    private let startFiles: Locked<StartFiles>
    private let token: Locked<AccessToken?>
    private let state: Locked<ReloadState>
    private let changes: PendingChanges
    private let log: Log
    private let thread: ReloadThread<ReadFiles>

    /// - Parameters:
    ///   - running: The configuration that is replaced.
    ///   - updater: Applies devices and profiles.
    ///   - enrolment: Saves the devices of rules and searches by the new rules.
    ///   - recorder: Records the outcome as an event.
    ///   - changes: Receives the end of a reload whose files were read too late.
    ///   - threads: The threads that read the files.
    ///   - token: The console's token, which is read again.
    ///   - state: The outcome so far, for the status.
    ///   - log: The log for people.
    init(
        _ running: RunningConfiguration,
        _ updater: GatewayUpdater,
        _ enrolment: EnrolmentService,
        _ recorder: EventRecorder,
        _ changes: PendingChanges,
        _ threads: ReloadThreads,
        token: Locked<AccessToken?>,
        state: Locked<ReloadState>,
        log: Log
    ) {
        (self.running, self.updater, self.enrolment, self.recorder) = (running, updater, enrolment, recorder)
        (self.changes, self.token, self.state, self.log) = (changes, token, state, log)
        startFiles = Locked(StartFiles(running.configuration, running.registry))
        thread = ReloadThread(threads)
    }

    /// Applies the files as they are now; if they are unusable, the running configuration stays.
    ///
    /// - Returns: The outcome; `nil` if the daemon ends before the files are read.
    func reload(_ file: ConfigurationFile) async -> ReloadOutcome? {
        SystemdNotifier.reloading()
        let enrolled = enrolledDevices
        let inUse = running.registry.profiles.map(\.origin)
        let outcome: ReloadOutcome
        do throws(GatewayError) {
            let read = try await thread.result(ended: { [changes] in changes.finishReload() }) { [log] in
                Result { () throws(GatewayError) in
                    try ReloadedConfiguration(file, enrolled: enrolled, profilesInUse: inUse, log)
                }
            }
            guard let read else { return nil }
            outcome = await apply(read)
        } catch {
            // Without a thread, the late files of an earlier reload are the newest ones.
            if error.kind == .noThread, case .read(let late)? = thread.takeLateEnd() {
                _ = await apply(recalling(late))
            }
            outcome = fail(error)
        }
        finish(outcome)
        return outcome
    }

    /// Applies the files of a reload that exceeded its limit, or reads them again if another was requested meanwhile.
    func finish(_ file: ConfigurationFile) async {
        switch thread.takeLateEnd() {
        case .read(let read)?:
            SystemdNotifier.reloading()
            finish(await apply(recalling(read)))
        case .outdated?: _ = await reload(file)
        case nil: break
        }
    }

    /// The part of the files that the daemon does not follow; `nil` while it uses them as they are.
    var status: DaemonStatus.Configuration? { state.withLock(\.status) }

    private var enrolledDevices: [EnrolledDevice] { running.configuration.devices.compactMap { EnrolledDevice($0) } }

    private func finish(_ outcome: ReloadOutcome) {
        state.withLock { $0.record(outcome) }
        SystemdNotifier.ready(status == nil ? running.systemdStatus : outcome.summary)
    }

    private func fail(_ error: GatewayError) -> ReloadOutcome {
        recordFailure(error.summary)
        return [.unread, .noThread].contains(error.kind) ? .unread(error.message) : .failed(error.message)
    }

    private func recordFailure(_ message: String) {
        log(.error, "the configuration was not reloaded; the previous one stays in use", [.init("reason", message)])
        recorder.record(kind: "daemon", ["state": .text("reload_failed"), "detail": .text(message)])
    }

    /// Returns late files with the devices that rules have made since these were read.
    private func recalling(_ late: ReadFiles) -> ReadFiles { late.map { $0.recalling(enrolledDevices) } }

    private func apply(_ read: ReadFiles) async -> ReloadOutcome {
        switch read {
        case .success(let next): .done(waiting: await apply(next))
        case .failure(let error): fail(error)
        }
    }

    /// - Returns: The sections whose changes wait for a restart.
    private func apply(_ next: ReloadedConfiguration) async -> [String] {
        let before = running.configuration
        let now = before.taking(next.configuration)
        let replaced = startFiles.withLock { $0.changedSections(next.registry) }
        let waiting = Set(before.sectionsThatDiffer(from: next.configuration) + replaced).sorted()
        log.setThreshold(LogLevel(now.log.level))
        if let token = now.http?.token { self.token.withLock { $0 = token } }
        await updater.apply(now, next.registry, next.devices)
        await enrolment.save()
        enrolment.search()
        if !waiting.isEmpty {
            let sections = LogField("sections", waiting.joined(separator: " "))
            log(.warning, "some changes need a restart", [sections])
        }
        let counts = [LogField("devices", now.devices.count), LogField("profiles", next.registry.profiles.count)]
        log(.notice, "the configuration was reloaded", counts)
        recorder.record(kind: "daemon", ["state": .text("reloaded")])
        return waiting
    }
}

/// The content of all files at a reload.
private struct ReloadedConfiguration: Sendable {
    /// The configuration without the devices that rules have made.
    private let parsed: Configuration
    private(set) var configuration: Configuration
    let registry: ProfileRegistry
    private(set) var devices: [SupervisedDevice]

    /// Reads the files.
    ///
    /// - Parameters:
    ///   - file: The main file.
    ///   - enrolled: The devices that rules have made; those stay that a rule would still make.
    ///   - profilesInUse: The files of the profiles in use. A mistake in one of them refuses the reload.
    ///   - log: Receives refused profiles.
    /// - Throws: ``GatewayError`` if a restart with these files would fail, or would lose a profile in use.
    init(
        _ file: ConfigurationFile,
        enrolled: [EnrolledDevice],
        profilesInUse: [String],
        _ log: Log
    ) throws(GatewayError) {
        do throws(ConfigErrors) {
            parsed = try file.parsed()
        } catch {
            throw GatewayError(error)
        }
        configuration = parsed.recalling(enrolled)
        configuration.logWarnings(of: file, log)
        registry = try configuration.loadProfiles(log)
        if let refusal = registry.refusals.first(where: { profilesInUse.contains(where: $0.concerns) }) {
            throw GatewayError(.configuration, refusal.description)
        }
        let unusable = configuration.secretFindings.filter { $0.severity == .error }
        guard unusable.isEmpty else { throw GatewayError(ConfigErrors(unusable)) }
        let registry = registry
        devices = configuration.devices.map { SupervisedDevice($0, registry) }
    }

    /// Returns the same files with these devices of rules.
    func recalling(_ enrolled: [EnrolledDevice]) -> Self {
        var result = self
        result.configuration = parsed.recalling(enrolled)
        result.devices = result.configuration.devices.map { SupervisedDevice($0, registry) }
        return result
    }
}

extension Configuration {
    /// Loads the profiles for the daemon and logs those that are refused.
    ///
    /// - Throws: ``GatewayError`` if the configuration does not fit the profiles.
    func loadProfiles(_ log: Log) throws(GatewayError) -> ProfileRegistry {
        do throws(ConfigErrors) {
            let registry = try loadProfiles(keepsTests: false)
            for refusal in registry.refusals {
                log(.error, "profile refused", [.init("path", refusal.place), .init("reason", refusal.advice)])
            }
            let mismatches = mismatches(with: registry)
            for warning in mismatches where warning.severity == .warning {
                log(.warning, "the configuration has an unknown name", [.init("reason", warning.headline)])
            }
            let errors = mismatches.filter { $0.severity == .error }
            guard errors.isEmpty else { throw ConfigErrors(errors) }
            return registry
        } catch {
            throw GatewayError(error)
        }
    }

    /// Logs the keys with old names, and the files that are not read.
    func logWarnings(of file: ConfigurationFile, _ log: Log) {
        for key in oldKeys {
            let fields = [LogField("place", key.place), LogField("reason", key.finding.problem)]
            log(.warning, "the configuration has a key with an old name", fields)
        }
        for finding in file.unreadFiles {
            let fields = [LogField("path", finding.file), LogField("advice", finding.problem)]
            log(.warning, "a file of the configuration is not read", fields)
        }
    }

    /// This configuration, with the values of `next` wherever a running daemon can change them.
    func taking(_ next: Configuration) -> Configuration {
        var result = self
        (result.devices, result.enrol, result.profiles) = (next.devices, next.enrol, next.profiles)
        (result.alerts, result.alertMetrics) = (next.alerts, next.alertMetrics)
        result.log.level = next.log.level
        result.mqtt?.copyRules(of: next.mqtt)
        return result
    }

    /// The sections of `next` with changes that a running daemon cannot apply.
    func sectionsThatDiffer(from next: Configuration) -> [String] {
        let now = taking(next)
        let sections = [
            ("gateway", now.gateway == next.gateway), ("bluetooth", now.bluetooth == next.bluetooth),
            ("history", now.history == next.history), ("mqtt", now.mqtt == next.mqtt),
            ("http", now.http == next.http), ("fleet", now.fleet == next.fleet), ("log", now.log == next.log),
        ]
        let outputs = Set(now.outputs).symmetricDifference(next.outputs).map(\.name)
        return sections.filter { !$0.1 }.map(\.0) + Set(outputs).sorted()
    }
}

extension MQTTSettings {
    fileprivate mutating func copyRules(of next: MQTTSettings?) {
        guard let next else { return }
        (publish, retains, setsControls) = (next.publish, next.retains, next.setsControls)
    }
}
