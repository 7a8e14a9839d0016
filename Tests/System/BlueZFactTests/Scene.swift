import BlueZKit
import Testing

/// A stack with peripherals, and a bare client of it.
struct Scene {
    let stack: any BluetoothStack
    let client: BareClient
    private let neighbourhood: Neighbourhood

    /// Plays `body` on a stack that has just come up, no part of which may have crashed when it is over.
    ///
    /// `timing` is what the simulator does faster than the real stack, whose times are those of bluetoothd.
    static func play(
        _ peripherals: Neighbourhood.Entry...,
        timing: String = "disconnect: 50ms",
        _ body: (Scene) async throws -> Void
    ) async throws {
        try await play(peripherals, timing: timing, body)
    }

    static func play(
        _ peripherals: [Neighbourhood.Entry],
        timing: String,
        _ body: (Scene) async throws -> Void
    ) async throws {
        let neighbourhood = Neighbourhood(peripherals, timing: timing)
        let stack = try await StackKind.current.start(neighbourhood.scenario)
        let client = try await BareClient(on: stack.bus)
        try await body(Scene(stack: stack, client: client, neighbourhood: neighbourhood))
        await client.leave()
        try await stack.stop()
    }

    /// Plays `body` as ``play(_:timing:_:)`` does, and fails at once when bluetoothd dies meanwhile.
    ///
    /// Without it each wait of `body` would last until the time limit, as nothing comes any more.
    static func playWhileAlive(
        _ peripherals: Neighbourhood.Entry...,
        timing: String = "disconnect: 50ms",
        _ body: @escaping @Sendable (Scene) async throws -> Void
    ) async throws {
        try await play(peripherals, timing: timing) { scene in
            try await withThrowingTaskGroup { group in
                group.addTask { try await body(scene) }
                group.addTask {
                    await scene.client.waitForDeparture()
                    guard !Task.isCancelled else { return }
                    throw StackCrashed(description: "bluetoothd left the bus in the middle of the test: it crashed")
                }
                try await group.next()
                group.cancelAll()
            }
        }
    }

    /// Another client on the same bus.
    func newcomer() async throws -> BareClient {
        try await BareClient(on: stack.bus)
    }

    /// A peripheral's device object, as `client` or somebody else sees it.
    func device(_ name: String, of client: BareClient? = nil) -> BareObject {
        (client ?? self.client).device(address(name))
    }

    func address(_ name: String) -> String {
        neighbourhood.devices.first { $0.name == name }?.address ?? ""
    }

    var names: [String] { neighbourhood.devices.map(\.name) }

    /// Sends an order to the peripherals or their stack.
    func order(_ words: String...) async throws {
        try await stack.order(words)
    }

    /// The actions of the peripherals so far, which they write to a file on request.
    func truth() async throws -> Truth {
        try await order("status")
        return try Truth(path: stack.truthPath)
    }

    /// The number of events of one kind at a peripheral, or at one of its characteristics.
    func count(_ event: String, _ name: String, _ characteristic: String? = nil) async throws -> Int {
        try await truth().count(event, of: address(name), characteristic)
    }
}

extension Trait where Self == ConditionTrait {
    /// Says that a fact is one of a single stack, and why; the other one's runs report it as skipped.
    static func only(on kind: StackKind, because reason: String) -> Self {
        .enabled(if: StackKind.current == kind, "a fact of the \(kind.rawValue) stack: \(reason)")
    }
}

extension Neighbourhood.Entry {
    /// A heart rate strap that sends only by order, as `burst`, unless `more` gives it another rate.
    static func strap(_ name: String = "strap", count: Int = 1, _ more: String = "rate: 0") -> Self {
        Self("heart-rate", name, count: count, more)
    }

    /// Characteristics of every kind: fff1 may be read, written and notified, and takes one or two octets; fff2 refuses
    /// every value; fff3 takes commands only; fff4 only notifies, three payloads in turn, the first of them empty; fff5
    /// can only be read.
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
