import GattherdConfig
import GattherdGATT
import GattherdHTTP
import GattherdModel
import GattherdProfiles
import GattherdSync

/// Adds devices to the configuration, and changes their labels, for people at the dashboard.
struct DeviceEditor: Sendable {
    private let editor: ConfigurationEditor
    private let running: RunningConfiguration

    init(_ editor: ConfigurationEditor, _ running: RunningConfiguration) {
        (self.editor, self.running) = (editor, running)
    }

    // MARK: - New devices

    /// Adds a device, as `gattherd add` does, or only shows the text.
    func add(_ request: NewDevice) async throws(BackendError) -> [UInt8] {
        let (proposal, secret) = try proposal(request)
        let source = proposal.source(in: editor.file, by: "the dashboard")
        if let obstacle = editor.file.obstacle(toReplacing: source.name) {
            throw BackendError(.forbidden, obstacle)
        }
        let change = ConfigurationEditor.Change(source: source, before: nil, secret: secret)
        try await editor.onThread { [editor] in
            Result { () throws(BackendError) in try editor.checkAddition(change) }
        }
        if !request.isPreview { _ = try await editor.apply(change) }
        return JSONWriter.bytes { writer in
            writer.beginObject()
            writer.member("device", proposal.name)
            writer.member("file", editor.file.name(ofPath: source.name))
            writer.member("text", String(decoding: source.bytes, as: UTF8.self))
            writer.endObject()
        }
    }

    private func proposal(
        _ request: NewDevice
    ) throws(BackendError) -> (proposal: DeviceProposal, secret: ConfigSource?) {
        guard let address = BluetoothAddress(anyNotation: request.address) else {
            throw BackendError(.invalid, "'\(request.address.cut(toBytes: 40))' is not a Bluetooth address")
        }
        guard Slug.isValid(request.name) else {
            let rule = "write a-z, 0-9, '-' and '_', 64 of them at most"
            throw BackendError(.invalid, "'\(request.name.cut(toBytes: 80))' is not a name of a device; \(rule)")
        }
        try Self.refuseControlCharacters(in: [request.title, request.area] + request.profiles)
        try refuseDuplicate(of: request.name, address)
        var proposal = DeviceProposal(name: request.name, address: address, profiles: request.profiles)
        (proposal.title, proposal.area) = (request.title, request.area)
        guard let key = request.key else { return (proposal, nil) }
        let digits = String(key.filter { !$0.isWhitespace })
        guard let bytes = Hexadecimal.octets(digits), BindKey(bytes, remark: "") != nil else {
            throw BackendError(.invalid, "the key is not 32 or 24 hexadecimal digits")
        }
        let path = editor.file.fragmentFolder + "/" + request.name + ".key"
        proposal.keyFile = editor.file.value(naming: path)
        return (proposal, ConfigSource(name: path, text: digits + "\n"))
    }

    /// Refuses characters that a one-line scalar cannot hold; YAML also breaks lines at U+2028 and U+2029.
    private static func refuseControlCharacters(in texts: [String?]) throws(BackendError) {
        let scalars = texts.lazy.compactMap(\.self).flatMap(\.unicodeScalars)
        let breaks: [Unicode.GeneralCategory] = [.control, .lineSeparator, .paragraphSeparator]
        guard scalars.contains(where: { breaks.contains($0.properties.generalCategory) }) else { return }
        throw BackendError(.invalid, "names, areas and notes are one line, without control characters")
    }

    private func refuseDuplicate(of name: String, _ address: BluetoothAddress) throws(BackendError) {
        let devices = running.configuration.devices
        if let device = devices.first(where: { $0.address.value == address }) {
            throw BackendError(.conflict, "\(address) is the device '\(device.name.value)' already")
        }
        guard !devices.contains(where: { $0.name.value == name }) else {
            throw BackendError(.conflict, "there is a device '\(name)' already; choose another name")
        }
    }

    // MARK: - Labels

    /// Changes the name for people, the area and the note of a device; its name, topics and history stay.
    func label(_ name: String, _ label: NewLabel) async throws(BackendError) -> [UInt8] {
        guard let device = running.configuration.devices.first(where: { $0.name.value == name }) else {
            throw BackendError(.notFound, "there is no device '\(name.cut(toBytes: 80))'")
        }
        guard device.rule == nil, let place = device.name.place else {
            throw BackendError(.conflict, "a rule of 'enrol' has made '\(name)'; add it as a device of its own")
        }
        try Self.refuseControlCharacters(in: [label.title, label.area, label.note])
        let change = try await editor.onThread { [self] in
            Result { () throws(BackendError) in try labelChange(device, in: place.file, label) }
        }
        _ = try await editor.apply(change)
        return JSONWriter.bytes { writer in
            writer.beginObject()
            writer.member("device", name)
            writer.member("file", editor.file.name(ofPath: place.file))
            writer.endObject()
        }
    }

    private func labelChange(
        _ device: DeviceSettings,
        in path: String,
        _ label: NewLabel
    ) throws(BackendError) -> ConfigurationEditor.Change {
        let before: ConfigurationText
        do throws(FileError) { before = try editor.file.text(ofPath: path) } catch {
            throw BackendError(writing: error)
        }
        let name = device.name.value
        let changes = [("title", label.title), ("area", label.area), ("note", label.note)]
        let bytes = DeviceTextEdit.apply(changes, to: name, in: before.bytes)
        guard let bytes else { throw Self.cannotEdit(path) }
        let source = ConfigSource(name: path, bytes: bytes)
        let (next, errors) = editor.file.parsedLeniently(with: [source])
        guard errors.isEmpty else { throw BackendError(errors) }
        guard expects(next, of: name, label) else { throw Self.cannotEdit(path) }
        return ConfigurationEditor.Change(source: source, before: before)
    }

    /// True if the labels are all that differs from the files as they are.
    private func expects(_ next: Configuration, of name: String, _ label: NewLabel) -> Bool {
        var wanted = editor.file.parsedLeniently().configuration
        guard let index = wanted.devices.firstIndex(where: { $0.name.value == name }) else { return false }
        wanted.devices[index].title = label.title
        wanted.devices[index].area = label.area
        wanted.devices[index].note = label.note
        return wanted.devices == next.devices && wanted.sectionsThatDiffer(from: next).isEmpty
    }

    private static func cannotEdit(_ path: String) -> BackendError {
        BackendError(.conflict, "the form of \(path) is not one that can be changed here; edit the file")
    }
}
