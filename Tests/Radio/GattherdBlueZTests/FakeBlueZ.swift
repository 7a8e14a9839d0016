import GattherdDBus
import GattherdSync
import Glibc

/// An org.bluez with one adapter, one peripheral and one service. It follows a test's script, and otherwise behaves
/// like BlueZ without faults.
actor FakeBlueZ {
    typealias Script = @Sendable (isolated FakeBlueZ, DBusMethodCall) throws -> Void
    typealias Properties = [String: DBusValue]

    static let adapter = "/org/bluez/hci0"
    static let device = "/org/bluez/hci0/dev_C0_FF_EE_00_00_01"
    static let service = device + "/service000a"
    static let measurement = service + "/char000b"
    static let control = service + "/char000e"

    let connection: DBusConnection
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe connection.unownedExecutor }

    private nonisolated let calls = LatestValue<[String]>([])
    /// The completed calls in order: `Connect`, for example.
    var asked: [String] { calls.state }
    private(set) var objects: [String: [String: Properties]] = [:]
    private var scripts: [String: Script] = [:]
    private var held: [DBusMethodCall] = []
    private(set) var arguments: [String: [DBusValue]] = [:]

    /// Takes the name on the bus.
    init(_ address: String, isEmpty: Bool = false) async throws {
        connection = try await .open(.address(address), on: EventLoop(name: "fake"))
        if !isEmpty { populate() }
        connection.export("/", subtree: true) { call in
            do { try self.answer(call) } catch {
                try? call.fail(.init(name: DBusError.failedName, message: "\(error)"))
            }
        }
        try await connection.requestName("org.bluez")
    }

    /// Leaves the bus, as a crash would.
    func crash() async {
        await connection.close()
        connection.loop.stop()
    }

    /// Scripts the behaviour of `member` from now on.
    func on(_ member: String, _ script: @escaping Script) {
        scripts[member] = script
    }

    /// Lets `member` fail with an error of BlueZ's.
    func fail(_ member: String, _ name: String, _ message: String) {
        on(member) { _, call in try call.fail(DBusError(name: "org.bluez.Error." + name, message: message)) }
    }

    /// Lets `member` never be answered, or not before ``release()``.
    func hang(_ member: String) {
        on(member) { fake, call in fake.held.append(call) }
    }

    /// Replies to the held calls.
    func release(_ values: DBusValue...) throws {
        try answerHeldCalls { try $0.reply(values) }
    }

    /// Answers the held calls.
    func answerHeldCalls(_ answer: @Sendable (DBusMethodCall) throws -> Void) throws {
        for call in held { try answer(call) }
        held.removeAll()
    }

    /// Signals a value and replies with it, for each held read.
    func answerHeldReads(_ octets: [UInt8]) throws {
        for call in held { try readValue(octets, call) }
        held.removeAll()
    }

    nonisolated func waitForCall(_ member: String, times: Int = 1) async {
        for await calls in calls.watch() where calls.filter({ $0 == member }).count >= times { return }
    }

    /// Returns when the bus has delivered the signals.
    func makeRoundTrip() async {
        _ = try? await connection.nameOwner("org.bluez")
    }

    // MARK: - Objects

    func add(_ path: String, _ interface: String, _ properties: Properties, isSignalled: Bool = true) {
        objects[path, default: [:]][interface] = properties
        guard isSignalled else { return }
        emit("/", "org.freedesktop.DBus.ObjectManager", "InterfacesAdded", [.objectPath(path), dictionary(path)])
    }

    func remove(_ path: String) {
        let interfaces = objects.removeValue(forKey: path)?.keys.sorted() ?? []
        let arguments: [DBusValue] = [.objectPath(path), .strings(interfaces)]
        emit("/", "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved", arguments)
    }

    func set(_ path: String, _ interface: String, _ properties: Properties, invalidated: [String] = []) {
        for (name, value) in properties { objects[path]?[interface]?[name] = value }
        for name in invalidated { objects[path]?[interface]?[name] = nil }
        let arguments: [DBusValue] = [.string(interface), dictionary(properties), .strings(invalidated)]
        emit(path, "org.freedesktop.DBus.Properties", "PropertiesChanged", arguments)
    }

    func setDevice(_ properties: Properties, invalidated: [String] = []) {
        set(Self.device, "org.bluez.Device1", properties, invalidated: invalidated)
    }

    /// Changes a property without a signal.
    func setSilently(_ path: String, _ interface: String, _ name: String, _ value: DBusValue) {
        objects[path]?[interface]?[name] = value
    }

    /// Signals a notification, once for each of `copies` subscribed clients, with nothing in between.
    func notify(_ octets: [UInt8], copies: Int = 1, at path: String = FakeBlueZ.measurement) {
        for _ in 0..<copies { set(path, "org.bluez.GattCharacteristic1", ["Value": .bytes(octets)]) }
    }

    /// Signals the value of another client's read and answers that client, with nothing in between but `signals`
    /// new signal strengths.
    func answerReadOfOther(_ octets: [UInt8], at path: String = FakeBlueZ.measurement, signals: Int16 = 0) {
        notify(octets, at: path)
        for number in 0..<signals { setDevice(["RSSI": .int16(-60 - number)]) }
        emit(path, "org.example.Answer", "Sent", [], to: "org.freedesktop.DBus")
    }

    func setConnected(_ isConnected: Bool) {
        setDevice(["Connected": .boolean(isConnected), "ServicesResolved": .boolean(isConnected)])
    }

    /// Signals the reason of the link's end, as BlueZ does from 5.83 on.
    func explainEnd(_ reason: String) {
        emit(Self.device, "org.bluez.Device1", "Disconnected", [.string(reason), .string("")])
    }

    func addTable() {
        add(
            Self.service,
            "org.bluez.GattService1",
            ["UUID": .string("0000180d-0000-1000-8000-00805f9b34fb"), "Device": .objectPath(Self.device)]
        )
        addCharacteristic(Self.measurement, "00002a37-0000-1000-8000-00805f9b34fb", ["read", "notify"])
        addCharacteristic(Self.control, "00002a39-0000-1000-8000-00805f9b34fb", ["write", "write-without-response"])
    }

    private func addCharacteristic(_ path: String, _ uuid: String, _ flags: [String]) {
        add(
            path,
            "org.bluez.GattCharacteristic1",
            [
                "UUID": .string(uuid), "Service": .objectPath(Self.service), "Flags": .strings(flags),
                "Notifying": .boolean(false), "MTU": .uint16(23),
            ]
        )
    }

    private func populate() {
        objects[Self.adapter] = [
            "org.bluez.Adapter1": [
                "Address": .string("00:00:5E:00:53:01"), "Powered": .boolean(true), "Discovering": .boolean(false),
            ]
        ]
        objects[Self.device] = [
            "org.bluez.Device1": [
                "Address": .string("C0:FF:EE:00:00:01"), "Adapter": .objectPath(Self.adapter),
                "Name": .string("strap"), "RSSI": .int16(-60), "Connected": .boolean(false),
                "ServicesResolved": .boolean(false),
            ]
        ]
    }

    // MARK: - Answers

    private func answer(_ call: DBusMethodCall) throws {
        arguments[call.member] = try call.arguments()
        // Recorded last, so that the call is complete for a test that waits for it.
        defer { calls.update { $0.append(call.member) } }
        if let script = scripts[call.member] { return try script(self, call) }
        switch call.member {
        case "GetManagedObjects": try call.reply(managedObjects())
        case "GetAll":
            guard let properties = objects[call.path]?[try call.arguments().first?.string ?? ""] else {
                return try failUnknownObject(call)
            }
            try call.reply(dictionary(properties))
        case "Get":
            let question = try call.arguments().compactMap(\.string)
            guard question.count == 2, let value = objects[call.path]?[question[0]]?[question[1]] else {
                return try failUnknownObject(call)
            }
            try call.reply(.variant(value))
        case "ReadValue" where objects[call.path] != nil: try readValue([1, 2, 3], call)
        case "AcquireNotify", "Connect", "Disconnect": try answerLink(call)
        default:
            guard objects[call.path] != nil || call.member == "Introspect" else { return try failUnknownObject(call) }
            try call.reply()
        }
    }

    private func answerLink(_ call: DBusMethodCall) throws {
        guard objects[call.path] != nil else { return try failUnknownObject(call) }
        switch call.member {
        case "Connect":
            setDevice(["Connected": .boolean(true)])
            try call.reply()
            addTable()
            setDevice(["ServicesResolved": .boolean(true)])
        case "Disconnect":
            setConnected(false)
            try call.reply()
        default: try call.failUnknownMethod()
        }
    }

    /// Signals the value of a read like a notification, then replies, as BlueZ does.
    func readValue(_ octets: [UInt8], _ call: DBusMethodCall) throws {
        notify(octets, at: call.path)
        try call.reply(.bytes(octets))
    }

    private func failUnknownObject(_ call: DBusMethodCall) throws {
        let text = "Method \"\(call.member)\" with signature \"\" on interface \"\(call.interface)\" doesn't exist\n"
        try call.fail(DBusError(name: "org.freedesktop.DBus.Error.UnknownObject", message: text))
    }

    private func emit(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [DBusValue],
        to destination: String? = nil
    ) {
        try? connection.emit(path, interface, member, arguments, to: destination)
    }

    private func managedObjects() -> DBusValue {
        .dictionary(
            key: "o",
            value: "a{sa{sv}}",
            objects.keys.sorted().map { DBusEntry(.objectPath($0), dictionary($0)) }
        )
    }

    private func dictionary(_ path: String) -> DBusValue {
        let interfaces = objects[path] ?? [:]
        return .dictionary(
            key: "s",
            value: "a{sv}",
            interfaces.map { DBusEntry(.string($0.key), dictionary($0.value)) }
        )
    }

    private nonisolated func dictionary(_ properties: Properties) -> DBusValue {
        .dictionary(key: "s", value: "v", properties.map { DBusEntry(.string($0.key), .variant($0.value)) })
    }
}

/// Both ends of a notification socket, as `AcquireNotify` makes them.
final class SocketPair: Sendable {
    private let ends: Locked<(Int32, Int32)>

    init() {
        var ends: [Int32] = [-1, -1]
        _ = unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends)
        self.ends = Locked((ends[0], ends[1]))
    }

    deinit { hangUp() }

    /// A duplicate of the central's end.
    func makeDescriptor() -> DBusDescriptor {
        DBusDescriptor(owning: dup(ends.withLock { $0.1 }))
    }

    /// Answers `AcquireNotify` with the central's end, and keeps no copy of it.
    func answer(_ call: DBusMethodCall) throws {
        let end = ends.withLock { ends in
            defer { ends.1 = -1 }
            return ends.1
        }
        try call.reply(.fileDescriptor(DBusDescriptor(owning: end)), .uint16(23))
    }

    func send(_ octets: [UInt8]) {
        let end = ends.withLock { $0.0 }
        _ = unsafe Glibc.send(end, octets, octets.count, 0)
    }

    /// Waits, blocking the thread, for the next packet that the central sends.
    func receive() -> [UInt8] {
        var octets = [UInt8](repeating: 0, count: 600)
        let count = unsafe recv(ends.withLock { $0.0 }, &octets, octets.count, 0)
        return Array(octets.prefix(max(0, count)))
    }

    func hangUp() {
        ends.withLock { ends in
            for end in [ends.0, ends.1] where end >= 0 { close(end) }
            ends = (-1, -1)
        }
    }

    /// Waits, blocking the thread, until something is sent to the central's end.
    func waitForPacket() {
        var octet: UInt8 = 0
        _ = unsafe recv(ends.withLock { $0.1 }, &octet, 1, 0)
    }

    /// Waits until the central's end is closed.
    func waitForClose() {
        var octet: UInt8 = 0
        let end = ends.withLock { $0.0 }
        while unsafe recv(end, &octet, 1, 0) > 0 {}
    }
}
