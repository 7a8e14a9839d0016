import GattherdConfig
import GattherdHTTP
import GattherdLog
import GattherdModel
import GattherdSync
import Glibc

/// Gives the HTTP service access to the configuration, the scan, the log and the checks.
struct GatewayAdministration: AdministrationBackend {
    private let scan: PeripheralScan
    private let editor: ConfigurationEditor
    private let devices: DeviceEditor
    private let recent: RecentLog
    private let commands: CommandRun
    private let reporter: StatusReporter
    private let restartSwitch: RestartSwitch

    init(
        _ scan: PeripheralScan,
        _ editor: ConfigurationEditor,
        _ running: RunningConfiguration,
        _ recent: RecentLog,
        _ reporter: StatusReporter,
        _ restartSwitch: RestartSwitch
    ) {
        (self.scan, self.editor, self.recent, self.reporter) = (scan, editor, recent, reporter)
        self.restartSwitch = restartSwitch
        devices = DeviceEditor(editor, running)
        commands = CommandRun(editor.file)
    }

    func peripherals() async -> [UInt8] { await scan.peripherals() }

    func add(_ device: NewDevice) async -> Result<[UInt8], BackendError> {
        do throws(BackendError) { return .success(try await devices.add(device)) } catch {
            return .failure(error)
        }
    }

    func label(_ device: String, _ label: NewLabel) async -> Result<[UInt8], BackendError> {
        do throws(BackendError) { return .success(try await devices.label(device, label)) } catch {
            return .failure(error)
        }
    }

    func doctor() async -> Result<[UInt8], BackendError> {
        do throws(BackendError) { return .success(try await commands.output("doctor")) } catch {
            return .failure(error)
        }
    }

    func explanation(of device: String) async -> Result<[UInt8], BackendError> {
        guard reporter.status.devices.contains(where: { $0.device == device }) else {
            return .failure(BackendError(.notFound, "there is no device '\(device.cut(toBytes: 80))'"))
        }
        do throws(BackendError) { return .success(try await commands.output("why", [device])) } catch {
            return .failure(error)
        }
    }

    func log(_ query: LogQuery) async -> [UInt8] {
        let records = recent.records(from: query.level, device: query.device, limit: query.limit)
        return JSONWriter.bytes { writer in
            writer.beginArray()
            for record in records { writer.record(record) }
            writer.endArray()
        }
    }

    // MARK: - Configuration

    func configurationFiles() async -> [UInt8] {
        let file = editor.file
        let (paths, obstacle) =
            await NamedThread.result(name: "configuration") { (file.paths, file.obstacleToAdding) } ?? ([], nil)
        let pending = reporter.status.configuration
        return JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("files")
            writer.beginArray()
            for path in paths.prefix(ConfigurationEditor.maximumFiles) { writer.string(file.name(ofPath: path)) }
            writer.endArray()
            writer.member("obstacle", obstacle)
            writer.strings("restart_needed", pending?.restartNeeded ?? [])
            writer.member("error", pending?.error)
            writer.key("can_restart")
            writer.boolean(restartSwitch.isOffered)
            writer.endObject()
        }
    }

    func configurationFile(_ name: String) async -> Result<[UInt8], BackendError> {
        do throws(BackendError) {
            let (path, text) = try await editor.onThread { [self] in
                Result { () throws(BackendError) in try content(ofFile: name) }
            }
            return .success(
                JSONWriter.bytes { writer in
                    writer.beginObject()
                    writer.member("file", name)
                    writer.member("text", String(decoding: text.bytes, as: UTF8.self))
                    writer.member("version", text.version)
                    writer.member("obstacle", editor.file.obstacle(toReplacing: path))
                    writer.endObject()
                }
            )
        } catch {
            return .failure(error)
        }
    }

    func check(_ draft: ConfigurationDraft) async -> Result<[UInt8], BackendError> {
        do throws(BackendError) {
            let (findings, waiting) = try await editor.onThread { [self] in
                Result { () throws(BackendError) in editor.findings(with: try source(draft)) }
            }
            return .success(
                JSONWriter.bytes { writer in
                    writer.beginObject()
                    writer.key("findings")
                    writer.beginArray()
                    for finding in findings.prefix(100) { writer.finding(finding, editor.file) }
                    writer.endArray()
                    writer.strings("restart_needed", waiting)
                    writer.endObject()
                }
            )
        } catch {
            return .failure(error)
        }
    }

    func apply(_ draft: ConfigurationDraft) async -> Result<[UInt8], BackendError> {
        do throws(BackendError) {
            let change = try await change(draft)
            let waiting = try await editor.apply(change)
            return .success(
                JSONWriter.bytes { writer in
                    writer.beginObject()
                    writer.member("file", draft.file)
                    let isDeleted = editor.deletes(change)
                    writer.member("version", isDeleted ? nil : ConfigurationText(bytes: change.source.bytes).version)
                    writer.strings("restart_needed", waiting)
                    writer.endObject()
                }
            )
        } catch {
            return .failure(error)
        }
    }

    func restart() async -> Result<[UInt8], BackendError> {
        guard restartSwitch.isOffered else {
            let remedy = "on the host: systemctl restart gattherd"
            return .failure(BackendError(.unavailable, "no supervisor would restart the daemon; \(remedy)"))
        }
        do throws(BackendError) {
            // A daemon that cannot use its files would not start again.
            try await editor.reloadForStart()
        } catch {
            return .failure(error)
        }
        restartSwitch.request()
        return .success(Array("{}".utf8))
    }

    /// Returns the change of a draft, which must make a valid configuration.
    private func change(_ draft: ConfigurationDraft) async throws(BackendError) -> ConfigurationEditor.Change {
        try await editor.onThread { [self] in
            Result { () throws(BackendError) in
                let new = try source(draft)
                var before: ConfigurationText?
                do throws(FileError) {
                    if draft.version != nil { before = try editor.file.text(ofPath: new.name) }
                } catch {
                    throw BackendError(reading: error)
                }
                guard before?.version == draft.version else {
                    throw BackendError(.conflict, "\(draft.file) was changed meanwhile; read it again")
                }
                let findings = editor.findings(with: new).findings
                guard !findings.contains(where: { $0.severity == .error }) else { throw BackendError(findings) }
                return ConfigurationEditor.Change(source: new, before: before)
            }
        }
    }

    private func source(_ draft: ConfigurationDraft) throws(BackendError) -> ConfigSource {
        guard draft.text.utf8.count <= ConfigurationText.largest else {
            throw BackendError(.invalid, "a file has at most \(ConfigurationText.largest) bytes")
        }
        return ConfigSource(name: try path(draft.file), text: draft.text)
    }

    /// Reads a file by its name.
    private func content(ofFile name: String) throws(BackendError) -> (path: String, text: ConfigurationText) {
        let path = try path(name)
        do throws(FileError) {
            return (path, try editor.file.text(ofPath: path))
        } catch {
            throw BackendError(reading: error)
        }
    }

    /// Returns the path of a file by its name; lists the folder of further files.
    private func path(_ name: String) throws(BackendError) -> String {
        if let path = editor.file.path(named: name) { return path }
        let rule = "the files are \(editor.file.mainName) and gattherd.d/NAME.yaml"
        throw BackendError(.notFound, "there is no file '\(name.cut(toBytes: 120))'; \(rule)")
    }
}

extension BackendError {
    fileprivate init(reading error: FileError) {
        guard error.code != EACCES else {
            self.init(.forbidden, "\(error.path) cannot be read: \(error.reason)")
            return
        }
        self.init(writing: error)
    }
}

extension JSONWriter {
    fileprivate mutating func strings(_ name: String, _ texts: [String]) {
        key(name)
        beginArray()
        for text in texts { string(text) }
        endArray()
    }

    fileprivate mutating func record(_ record: RecentLog.Record) {
        beginObject()
        member("ts", record.time)
        member("level", "\(record.entry.level)")
        member("message", record.entry.message)
        key("fields")
        beginObject()
        for field in record.entry.fields { member(field.key, field.value) }
        endObject()
        endObject()
    }

    fileprivate mutating func finding(_ finding: ConfigError, _ file: ConfigurationFile) {
        beginObject()
        member("file", file.name(ofPath: finding.file))
        member("line", finding.place?.line)
        member("column", finding.place?.column)
        member("width", finding.place?.width)
        member("severity", finding.severity.rawValue)
        member("kind", finding.problem.kind)
        member("message", finding.problem.description)
        endObject()
    }
}
