import GattherdMachines
import Testing

/// Devices that leave the configuration of their owner.
@Suite
struct LeaseDepartureTests {
    private static let strap = LeasedDevice(name: "strap", address: "A")

    /// A machine of the gateway "west", with the centre's row of its only device.
    private struct Gateway {
        typealias Exchange = (requests: [LeaseRequest], ticket: Int)

        var machine = LeaseMachine(gateway: "west", at: .zero)
        var row = LeaseRow(address: "A")
        var now = Duration.zero

        mutating func configure(_ devices: [LeasedDevice]) {
            _ = machine.handle(.configured(devices), at: now)
        }

        /// Lets a tick pass; returns its exchange, if any.
        mutating func tick(_ phase: LeaseMachine.LinkPhase? = nil) -> Exchange? {
            now += .milliseconds(250)
            if let phase { _ = machine.handle(.link(device: "strap", phase), at: now) }
            for case .exchange(let requests, let ticket) in machine.handle(.tick, at: now) { return (requests, ticket) }
            return nil
        }

        /// Answers an exchange as the centre does if no other gateway is there.
        mutating func answer(_ exchange: Exchange) {
            for request in exchange.requests {
                switch request.operation {
                case .claim: (row.owner, row.epoch, row.isReleased) = ("west", row.epoch + 1, false)
                case .release: row.isReleased = true
                case .observe, .renew: break
                }
                (row.isGranted, row.remaining) = (request.operation != .observe, .seconds(30))
                row.bids = [LeaseRow.Bid(request.bid, age: .zero)]
            }
            _ = machine.handle(.answered(ticket: exchange.ticket, [row]), at: now)
        }

        /// Lets the time pass with a link in this phase; returns the requests.
        mutating func run(_ duration: Duration, _ phase: LeaseMachine.LinkPhase) -> [LeaseRequest] {
            let end = now + duration
            var requests: [LeaseRequest] = []
            while now < end {
                guard let exchange = tick(phase) else { continue }
                requests += exchange.requests
                answer(exchange)
            }
            return requests
        }

        /// Hears the device until it is claimed; returns the exchange with the claim.
        mutating func claim() throws -> Exchange {
            while now < .seconds(20) {
                _ = machine.handle(.heard(device: "strap", adapter: "hci0", rssi: -60), at: now)
                guard let exchange = tick() else { continue }
                if exchange.requests.contains(where: { $0.operation == .claim(epoch: 0) }) { return exchange }
                answer(exchange)
            }
            return try #require(nil as Exchange?, "nothing was claimed")
        }
    }

    private func owner() throws -> Gateway {
        var gateway = Gateway()
        gateway.configure([Self.strap])
        gateway.answer(try gateway.claim())
        #expect(gateway.machine.epoch(of: "strap", at: gateway.now) == 1)
        _ = gateway.run(.seconds(2), .linked)
        return gateway
    }

    @Test func `a device that its owner's configuration loses goes to the next gateway at once`() {
        var world = LeaseWorld([("west", 0), ("east", 50)], [.strap(at: 20), .tag(at: 20)], seed: 1)
        world.run(.seconds(10))
        #expect(world.devices[0].link == 0)
        world.configure(0, without: 0)
        world.run(.seconds(5))
        #expect(world.devices[0].link == 1)
        #expect(world.centre.owner(of: "A-strap")?.epoch == 2)
        #expect(world.centre.owner(of: "A-tag")?.name == "west")
        world.configure(0, without: 1)
        world.run(.seconds(5))
        #expect(world.centre.owner(of: "A-tag")?.name == "east")
    }

    @Test func `the lease of a removed device is released when its link ends, together with the bid`() throws {
        var gateway = try owner()
        gateway.configure([])
        let early = gateway.run(.seconds(3), .linked)
        #expect(early.isEmpty)
        #expect(gateway.machine.departingDevices == ["strap"])
        let requests = gateway.run(.seconds(5), .ending)
        #expect(requests.map(\.operation) == [.release(epoch: 1)])
        #expect(requests.map(\.bid.standing) == [.gone])
        #expect(gateway.machine.departingDevices.isEmpty)
    }

    @Test func `a release that the centre has not answered is repeated`() throws {
        var gateway = try owner()
        gateway.configure([])
        let exchange = gateway.tick(.withdrawn)
        let first = try #require(exchange)
        _ = gateway.machine.handle(.failed(ticket: first.ticket), at: gateway.now)
        let requests = gateway.run(.seconds(5), .withdrawn)
        #expect(requests.map(\.operation) == [.release(epoch: 1)])
    }

    @Test func `a lease that is given for a removed device is released`() throws {
        var gateway = Gateway()
        gateway.configure([Self.strap])
        let claim = try gateway.claim()
        gateway.configure([])
        gateway.answer(claim)
        let requests = gateway.run(.seconds(5), .withdrawn)
        #expect(requests.map(\.operation) == [.release(epoch: 1)])
    }

    @Test func `a device that only gets another name keeps its lease`() throws {
        var gateway = try owner()
        gateway.configure([LeasedDevice(name: "belt", address: "A")])
        let requests = gateway.run(.seconds(5), .ending)
        #expect(requests.allSatisfy { $0.device == "belt" && $0.operation != .release(epoch: 1) })
        #expect(gateway.machine.departingDevices.isEmpty)
    }

    /// The centre accepts one request for each address.
    @Test func `a device that returns before its link has ended is not released`() throws {
        var gateway = try owner()
        gateway.configure([])
        _ = gateway.run(.seconds(1), .linked)
        gateway.configure([Self.strap])
        #expect(gateway.machine.departingDevices.isEmpty)
        let requests = gateway.run(.seconds(5), .ending)
        #expect(!requests.isEmpty)
        #expect(!requests.contains { $0.operation == .release(epoch: 1) })
    }

    @Test func `a gateway that stops releases the device that it is removing`() throws {
        var gateway = try owner()
        gateway.configure([])
        _ = gateway.run(.seconds(1), .linked)
        let effects = gateway.machine.handle(.stop(releases: true), at: gateway.now)
        guard case .exchange(let requests, _)? = effects.first else {
            Issue.record("nothing was released")
            return
        }
        #expect(requests.map(\.operation) == [.release(epoch: 1)])
    }
}
