import GattherdMachines
import Testing

/// Claims and renewals that the centre does not grant.
@Suite
struct LeaseRefusalTests {
    private typealias Exchange = (requests: [LeaseRequest], ticket: Int)

    private static func row(epoch: Int64, isGranted: Bool, gateways: [String]? = nil) -> LeaseRow {
        var row = LeaseRow(address: "A", epoch: epoch)
        (row.owner, row.isReleased, row.isGranted, row.remaining) = ("west", false, isGranted, .seconds(30))
        row.gateways = gateways
        return row
    }

    /// Lets a tick pass; returns its exchange, if any.
    private static func tick(_ machine: inout LeaseMachine, _ now: inout Duration) -> Exchange? {
        now += .milliseconds(250)
        _ = machine.handle(.heard(device: "strap", adapter: "hci0", rssi: -60), at: now)
        for case .exchange(let requests, let ticket) in machine.handle(.tick, at: now) { return (requests, ticket) }
        return nil
    }

    /// Answers exchanges until one has the wanted operation; returns its ticket.
    private static func ticket(
        of operation: LeaseRequest.Operation,
        _ machine: inout LeaseMachine,
        _ now: inout Duration,
        answers: LeaseRow
    ) throws -> Int {
        let end = now + .seconds(20)
        while now < end {
            guard let exchange = tick(&machine, &now) else { continue }
            if exchange.requests.contains(where: { $0.operation == operation }) { return exchange.ticket }
            _ = machine.handle(.answered(ticket: exchange.ticket, [answers]), at: now)
        }
        return try #require(nil as Int?, "there was no \(operation)")
    }

    @Test func `a lease that the centre does not renew because of its list is released after the link`() throws {
        var machine = LeaseMachine(gateway: "west", at: .zero)
        var now = Duration.zero
        _ = machine.handle(.configured([LeasedDevice(name: "strap", address: "A")]), at: now)
        let claim = try Self.ticket(of: .claim(epoch: 0), &machine, &now, answers: LeaseRow(address: "A"))
        let owned = Self.row(epoch: 7, isGranted: true)
        _ = machine.handle(.answered(ticket: claim, [owned]), at: now)
        _ = machine.handle(.link(device: "strap", .linked), at: now)
        let renewal = try Self.ticket(of: .renew(epoch: 7), &machine, &now, answers: owned)

        let refused = Self.row(epoch: 7, isGranted: false, gateways: ["east"])
        let effects = machine.handle(.answered(ticket: renewal, [refused]), at: now)
        #expect(effects.contains(.handedOver(device: "strap", .excluded)))
        let detail = "handed over: the centre reserves it for east"
        #expect(effects.contains(.withdraw(device: "strap", detail: detail)))
        #expect(machine.epoch(of: "strap", at: now) == nil)

        _ = machine.handle(.link(device: "strap", .withdrawn), at: now)
        _ = try Self.ticket(of: .release(epoch: 7), &machine, &now, answers: refused)
    }

    @Test func `a lease that the centre does not renew for another reason has expired`() throws {
        var machine = LeaseMachine(gateway: "west", at: .zero)
        var now = Duration.zero
        _ = machine.handle(.configured([LeasedDevice(name: "strap", address: "A")]), at: now)
        let claim = try Self.ticket(of: .claim(epoch: 0), &machine, &now, answers: LeaseRow(address: "A"))
        let owned = Self.row(epoch: 7, isGranted: true)
        _ = machine.handle(.answered(ticket: claim, [owned]), at: now)
        let renewal = try Self.ticket(of: .renew(epoch: 7), &machine, &now, answers: owned)
        let effects = machine.handle(.answered(ticket: renewal, [Self.row(epoch: 7, isGranted: false)]), at: now)
        #expect(effects.contains(.handedOver(device: "strap", .expired)))
    }

    @Test func `a claim whose answer has no row of the device has failed`() throws {
        var machine = LeaseMachine(gateway: "west", at: .zero)
        var now = Duration.zero
        _ = machine.handle(.configured([LeasedDevice(name: "strap", address: "A")]), at: now)
        let free = LeaseRow(address: "A")
        let claim = try Self.ticket(of: .claim(epoch: 0), &machine, &now, answers: free)
        _ = machine.handle(.answered(ticket: claim, []), at: now)
        #expect(machine.status(of: "strap", at: now)?.role == .standby)
        _ = try Self.ticket(of: .claim(epoch: 0), &machine, &now, answers: free)
    }
}
