import GattherdDBus
import GattherdGATT
import Testing

@testable import GattherdSimulator

/// A ``VirtualSite`` with a manual clock.
///
/// Returns effects as lines of text, those of several gateways with the gateway's number in front.
struct Bench {
    let site: VirtualSite
    /// The number of the gateway that calls and orders go to.
    var gateway = 0
    private(set) var now = Duration.zero
    private var lastCall: UInt64 = 0
    private var lastRequest: UInt64 = 0
    private var lastSocket: UInt64 = 0

    static let adapter = "/org/bluez/hci0"
    static let device = "/org/bluez/hci0/dev_C0_FF_EE_00_00_01"

    init(_ yaml: String) throws {
        site = VirtualSite(try Scenario(yaml, file: "test.yaml"))
    }

    /// The bluetoothd of the current gateway.
    var bluetoothd: VirtualBlueZ { site.gateways[gateway] }

    private mutating func handle(_ event: VirtualBlueZ.Event) -> [String] {
        lines(site.handle(event, of: gateway, at: now))
    }

    /// Makes a bench with one peripheral of a kind, with additional members in YAML flow style.
    init(kind: String, _ more: String = "") throws {
        try self.init("peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: \(kind) \(more)}]")
    }

    /// Calls a method and returns the immediate effects.
    @discardableResult
    mutating func call(
        _ path: String,
        _ member: String,
        _ arguments: DBusValue...,
        from client: String = ":1.1"
    ) -> [String] {
        call(path, member, arguments, from: client)
    }

    @discardableResult
    mutating func call(
        _ path: String,
        _ member: String,
        _ arguments: [DBusValue],
        from client: String = ":1.1"
    ) -> [String] {
        lastCall += 1
        let interfaces = [
            "GetManagedObjects": InterfaceName.objectManager, "Get": InterfaceName.properties,
            "Set": InterfaceName.properties, "GetAll": InterfaceName.properties,
        ]
        let call = MethodCall(
            token: CallToken(id: lastCall),
            sender: client,
            path: path,
            interface: interfaces[member] ?? Self.interface(of: path),
            member: member,
            arguments: arguments
        )
        return handle(.call(call))
    }

    /// Advances the clock and returns the effects.
    @discardableResult
    mutating func wait(_ duration: Duration) -> [String] {
        now += duration
        return lines(site.advance(to: now))
    }

    /// Advances the clock and returns the effects as they are.
    mutating func waitForOutputs(_ duration: Duration) -> [VirtualSite.Output] {
        now += duration
        return site.advance(to: now)
    }

    @discardableResult
    mutating func order(_ order: SimulatorOrder) throws -> [String] {
        handle(.control(try OrderResolver(bluetoothd.world).command(for: order)))
    }

    @discardableResult
    mutating func leave(_ client: String) -> [String] {
        handle(.clientLeft(client))
    }

    /// Closes the client's end of the last acquired socket.
    @discardableResult
    mutating func closeReader() -> [String] { closeReader(lastSocket) }

    /// Writes a packet to the last acquired socket.
    mutating func write(_ packet: [UInt8]) -> [String] {
        handle(.packet(packet, SocketID(id: lastSocket)))
    }

    /// Reads a property as text.
    mutating func get(_ path: String, _ name: String) -> String {
        let line = call(path, "Get", .string(Self.interface(of: path)), .string(name)).first ?? ""
        return line.split(separator: " ", maxSplits: 2).dropFirst(2).first.map(String.init) ?? line
    }

    /// Registers an agent.
    mutating func registerAgent(_ capability: String, from client: String = ":1.1") {
        call("/org/bluez", "RegisterAgent", .objectPath("/agent"), .string(capability), from: client)
    }

    /// Answers the last agent request.
    @discardableResult
    mutating func answer(_ isYes: Bool, passkey: UInt32? = nil) -> [String] {
        handle(.agentAnswered(lastRequest, AgentAnswer(isYes: isYes, passkey: passkey)))
    }

    mutating func closeReader(_ socket: UInt64) -> [String] {
        handle(.socketClosed(SocketID(id: socket)))
    }

    /// Scans until the peripherals are known.
    mutating func scan(_ adapter: String = Bench.adapter) {
        call(adapter, "StartDiscovery")
        wait(.milliseconds(300))
    }

    /// Scans, connects and resolves the first peripheral.
    mutating func connect() {
        scan()
        call(Self.device, "Connect")
        wait(.milliseconds(300))
    }

    var objects: ObjectPublisher { bluetoothd.components.objects }

    func introspection(of path: String) -> String? { objects.introspection(of: path) }

    /// The path of a characteristic by its index in the scenario.
    func characteristic(_ index: Int) throws -> String {
        try #require(bluetoothd.world.devices[DeviceKey(adapter: 0, peripheral: 0)]?.gatt?.characteristics[index]?.path)
    }

    private static func interface(of path: String) -> String {
        let last = path.split(separator: "/").last ?? ""
        if last == "bluez" { return InterfaceName.agentManager }
        if last.hasPrefix("hci") { return InterfaceName.adapter }
        if last.hasPrefix("dev_") { return InterfaceName.device }
        if last.hasPrefix("desc") { return InterfaceName.descriptor }
        return InterfaceName.characteristic
    }
}

// MARK: - Effects as lines

extension Bench {
    fileprivate mutating func lines(_ outputs: [VirtualSite.Output]) -> [String] {
        for case .ask(let request) in outputs.map(\.effect) { lastRequest = request.id }
        for case .openSocket(let socket, _, _, _) in outputs.map(\.effect) { lastSocket = socket.id }
        return outputs.map { (site.gateways.count > 1 ? "\($0.gateway): " : "") + line($0.effect) }
    }
}

private func line(_ effect: Effect) -> String {
    switch effect {
    case .reply(let call, let value): "reply \(call.id)" + (value.map { " " + text($0) } ?? "")
    case .fail(let call, let error): "fail \(call.id) \(short(error.name)): \(error.message)"
    case .openSocket(let socket, let call, let mtu, _): "socket \(socket.id) for \(call.id) mtu \(mtu)"
    case .closeSocket(let socket): "close \(socket.id)"
    case .send(let socket, let record): "send \(socket.id) #\(record.number) \(Hexadecimal.text(record.payload.span))"
    case .changed(let path, _, let properties, let invalidated):
        "\(leaf(path)) "
            + (properties.map { "\($0.name)=\(text($0.value))" } + invalidated.map { "-\($0)" })
            .joined(separator: " ")
    case .added(let path, let interfaces): "+\(leaf(path)) \(short(interfaces.last?.name ?? ""))"
    case .removed(let path, let interfaces): "-\(leaf(path)) \(short(interfaces.last ?? ""))"
    case .record(let event): record(event)
    case .ask(let request): "ask \(request.agent.owner) \(request.member)" + arguments(request)
    case .notifyAgent(let agent, let member): "notify \(agent.owner) \(member)"
    case .stopDaemon: "stop"
    case .startDaemon: "start"
    }
}

private func arguments(_ request: AgentRequest) -> String {
    request.arguments.dropFirst().map { " " + text($0) }.joined()
}

private func record(_ event: TruthEvent) -> String {
    switch event {
    case .notification(let record):
        "(\(record.characteristic) #\(record.number) \(Hexadecimal.text(record.payload.span))"
            + (record.isDelivered ? ")" : " lost)")
    case .write(_, let uuid, let value, let error):
        "(write \(uuid.assigned16 == nil ? "" : "\(uuid) ")\(Hexadecimal.text(value.span))"
            + (error.map { " error \($0))" } ?? ")")
    case .subscribed(_, _, let isSubscribed): isSubscribed ? "(subscribed)" : "(unsubscribed)"
    case .connected(_, let adapter): "(connected \(adapter))"
    case .disconnected(_, let reason): "(disconnected \(reason.rawValue))"
    case .crashed: "(crash)"
    }
}

private func text(_ wrapped: DBusValue) -> String {
    let value = wrapped.unwrapped
    return switch value {
    case .boolean(let flag): "\(flag)"
    case .bytes(let octets): Hexadecimal.text(octets.span)
    case .array:
        "[" + (value.strings ?? []).map(shortUUID).joined(separator: ",") + "]"
    default: value.string ?? value.int.map { "\($0)" } ?? "…"
    }
}

/// The four digits of an assigned number, or the text itself.
private func shortUUID(_ text: String) -> String {
    text.hasPrefix("0000") ? String(text.dropFirst(4).prefix(4)) : text
}

private func leaf(_ path: String) -> String { String(path.split(separator: "/").last ?? "/") }
private func short(_ name: String) -> String { String(name.split(separator: ".").last ?? "") }
