import BlueZKit
import GattherdDBus
import Testing

/// A stack with peripherals, and a client of its bluetoothd.
struct BlueZFixture {
    let stack: any BluetoothStack
    let client: BlueZClient
    private let peripherals: TestPeripherals

    /// Runs `body` on a new stack and checks at its end that no part has crashed.
    ///
    /// `timing` shortens times of the simulator. The real stack has those of bluetoothd.
    static func run(
        _ entries: TestPeripherals.Entry...,
        timing: String = "disconnect: 50ms",
        _ body: (BlueZFixture) async throws -> Void
    ) async throws {
        try await run(entries, timing: timing, body)
    }

    static func run(
        _ entries: [TestPeripherals.Entry],
        timing: String,
        _ body: (BlueZFixture) async throws -> Void
    ) async throws {
        let peripherals = TestPeripherals(entries, timing: timing)
        let stack = try await StackKind.current.start(peripherals.scenario)
        let client = try await BlueZClient(on: stack.bus)
        try await body(BlueZFixture(stack: stack, client: client, peripherals: peripherals))
        await client.leave()
        try await stack.stop()
    }

    /// Runs `body` like ``run(_:timing:_:)``, and fails at once if bluetoothd dies meanwhile.
    ///
    /// Otherwise each wait of `body` would last until the time limit.
    static func runWhileAlive(
        _ entries: TestPeripherals.Entry...,
        timing: String = "disconnect: 50ms",
        _ body: @escaping @Sendable (BlueZFixture) async throws -> Void
    ) async throws {
        try await run(entries, timing: timing) { fixture in
            try await withThrowingTaskGroup { group in
                group.addTask { try await body(fixture) }
                group.addTask {
                    await fixture.client.waitForDeparture()
                    guard !Task.isCancelled else { return }
                    throw StackCrashed(description: "bluetoothd left the bus in the middle of the test: it crashed")
                }
                try await group.next()
                group.cancelAll()
            }
        }
    }

    /// Another client on the same bus.
    func anotherClient() async throws -> BlueZClient {
        try await BlueZClient(on: stack.bus)
    }

    /// A peripheral's device object, called by `client` or by another client.
    func device(_ name: String, of client: BlueZClient? = nil) -> BlueZObject {
        (client ?? self.client).device(address(name))
    }

    func address(_ name: String) -> String {
        peripherals.devices.first { $0.name == name }?.address ?? ""
    }

    var names: [String] { peripherals.devices.map(\.name) }

    /// Sends an order to the peripherals or their stack.
    func order(_ words: String...) async throws {
        try await stack.order(words)
    }

    /// The events at the peripherals until now.
    func truth() async throws -> Truth {
        try await stack.truth()
    }

    /// The number of events of one kind at a peripheral, or at one of its characteristics.
    func count(_ event: String, _ name: String, _ characteristic: String? = nil) async throws -> Int {
        try await truth().count(event, of: address(name), characteristic)
    }
}

extension Trait where Self == ConditionTrait {
    /// Restricts a fact to one stack, with the reason.
    ///
    /// Runs on the other stack report it as skipped.
    static func only(on kind: StackKind, because reason: String) -> Self {
        .enabled(if: StackKind.current == kind, "a fact of the \(kind.rawValue) stack: \(reason)")
    }
}

extension TestPeripherals.Entry {
    /// A heart rate strap that notifies only by orders such as `burst`, unless `more` has another rate.
    static func strap(_ name: String = "strap", count: Int = 1, _ more: String = "rate: 0") -> Self {
        Self("heart-rate", name, count: count, more)
    }

    /// Characteristics of every kind.
    ///
    ///  - fff1 can be read, written with one or two bytes, and notified.
    ///  - fff2 refuses all values.
    ///  - fff3 accepts commands only.
    ///  - fff4 notifies three payloads in turn, the first of them empty.
    ///  - fff5 can only be read.
    static let thing = Self(
        "custom",
        "thing",
        """
        rate: 0, services: [{uuid: fff0, characteristics: [\
        {uuid: fff1, properties: [read, write, notify], value: '01', write: {min_length: 1, max_length: 2}},\
        {uuid: fff2, properties: [write], write: {error: 0x80}},\
        {uuid: fff3, properties: [write-without-response]},\
        {uuid: fff4, properties: [notify], notify: ['', '02', '0303']},\
        {uuid: fff5, properties: [read], value: '05'}]}]
        """
    )

    /// One characteristic, fff1, that needs an encrypted link ("Just Works").
    static let safe = Self(
        "custom",
        "safe",
        "services: [{uuid: fff0, characteristics: [{uuid: fff1, properties: [read], value: '2A', encrypted: true}]}]"
    )
}

extension BlueZObject {
    /// Calls a method and expects it to end so, in the words of ``BlueZObject/outcome(_:_:timeout:)``.
    func expect(
        _ member: String,
        _ arguments: DBusValue...,
        endsIn expected: String,
        timeout: Duration = .seconds(90),
        _ comment: Comment? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        let outcome = await client.outcome(path, interface, member, arguments, timeout: timeout)
        #expect(outcome == expected, comment, sourceLocation: sourceLocation)
    }
}
