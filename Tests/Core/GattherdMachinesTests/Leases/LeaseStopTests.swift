import GattherdMachines
import Testing

/// The end of a gateway while the centre has not answered.
@Suite
struct LeaseStopTests {
    /// A machine whose claim of a device the centre has not answered yet.
    private func claimant() throws -> (machine: LeaseMachine, ticket: Int) {
        var machine = LeaseMachine(gateway: "west", at: .zero)
        _ = machine.handle(.configured([LeasedDevice(name: "strap", address: "A")]), at: .zero)
        var row = LeaseRow(address: "A")
        for step in 1...100 {
            let now = Duration.milliseconds(250 * step)
            _ = machine.handle(.heard(device: "strap", adapter: "hci0", rssi: -60), at: now)
            for case .exchange(let requests, let ticket) in machine.handle(.tick, at: now) {
                if requests.contains(where: { $0.operation == .claim(epoch: 0) }) { return (machine, ticket) }
                row.bids = requests.map { LeaseRow.Bid($0.bid, age: .zero) }
                _ = machine.handle(.answered(ticket: ticket, [row]), at: now)
            }
        }
        return (machine, try #require(nil as Int?, "nothing was claimed"))
    }

    @Test(arguments: [true, false])
    func `a lease that is given while the gateway stops is released`(isGranted: Bool) throws {
        var (machine, ticket) = try claimant()
        #expect(machine.handle(.stop(releases: true), at: .seconds(30)).isEmpty)
        #expect(machine.isExchanging)
        var row = LeaseRow(address: "A", epoch: 7)
        (row.owner, row.isGranted, row.isReleased) = (isGranted ? "west" : "east", isGranted, false)
        let effects = machine.handle(.answered(ticket: ticket, [row]), at: .seconds(31))
        let released = effects.flatMap { effect -> [LeaseRequest.Operation] in
            if case .exchange(let requests, _) = effect { requests.map(\.operation) } else { [] }
        }
        #expect(released == (isGranted ? [.release(epoch: 7)] : []))
        #expect(effects.count == released.count, "nothing is admitted any more")
        #expect(machine.isExchanging == isGranted)
    }

    @Test func `a gateway that stops waits for the answer to a claim for two seconds`() throws {
        var (machine, ticket) = try claimant()
        #expect(machine.handle(.stop(releases: true), at: .seconds(30)).isEmpty)
        #expect(machine.handle(.tick, at: .milliseconds(31_900)).isEmpty)
        #expect(machine.isExchanging)
        #expect(machine.handle(.tick, at: .seconds(32)).isEmpty, "it owns nothing")
        #expect(!machine.isExchanging)
        var row = LeaseRow(address: "A", epoch: 7)
        (row.owner, row.isGranted, row.isReleased) = ("west", true, false)
        #expect(machine.handle(.answered(ticket: ticket, [row]), at: .seconds(33)).isEmpty)
    }

    @Test func `the last bids wait for the answer to the bids before`() throws {
        var (machine, ticket) = try claimant()
        var row = LeaseRow(address: "A", epoch: 7)
        (row.owner, row.isGranted, row.isReleased, row.remaining) = ("west", true, false, .seconds(30))
        _ = machine.handle(.answered(ticket: ticket, [row]), at: .seconds(5))
        var next: Int?
        for case .exchange(_, let number) in machine.handle(.tick, at: .seconds(6)) { next = number }
        let pending = try #require(next)
        #expect(machine.handle(.stop(releases: true), at: .seconds(7)).isEmpty)
        let effects = machine.handle(.answered(ticket: pending, [row]), at: .seconds(8))
        guard case .exchange(let requests, _)? = effects.first else {
            Issue.record("nothing was released")
            return
        }
        #expect(requests.map(\.operation) == [.release(epoch: 7)])
        #expect(requests.map(\.bid.standing) == [.gone])
    }

    @Test func `a late answer to a claim does not keep a gateway that stops from releasing its leases`() throws {
        var machine = LeaseMachine(gateway: "west", at: .zero)
        let devices = ["a", "b"].map { LeasedDevice(name: $0, address: $0.uppercased()) }
        _ = machine.handle(.configured(devices), at: .zero)
        var rows = devices.map { LeaseRow(address: $0.address) }
        var now = Duration.zero
        var isClaiming = false
        while !isClaiming, now < .seconds(20) {
            now += .milliseconds(250)
            // The second device is heard once the first one is owned.
            for device in devices where device.name == "a" || rows[0].owner != nil {
                _ = machine.handle(.heard(device: device.name, adapter: "hci0", rssi: -60), at: now)
            }
            for case .exchange(let requests, let ticket) in machine.handle(.tick, at: now) {
                isClaiming = requests.contains { $0.device == "b" && $0.operation == .claim(epoch: 0) }
                guard !isClaiming else { break }
                let isGranted = requests.contains { $0.device == "a" && $0.operation == .claim(epoch: 0) }
                if isGranted { (rows[0].owner, rows[0].epoch, rows[0].isReleased) = ("west", 7, false) }
                (rows[0].isGranted, rows[0].remaining) = (true, .seconds(30))
                _ = machine.handle(.answered(ticket: ticket, rows), at: now)
            }
        }
        try #require(isClaiming && machine.epoch(of: "a", at: now) == 7)
        #expect(machine.handle(.stop(releases: true), at: now).isEmpty)
        let effects = machine.handle(.tick, at: now + .seconds(2))
        guard case .exchange(let requests, _)? = effects.first else {
            Issue.record("nothing was released")
            return
        }
        #expect(requests.map(\.operation) == [.release(epoch: 7), .observe])
    }

    @Test func `a gateway that stops withdraws its bids for the devices of others`() throws {
        var machine = LeaseMachine(gateway: "west", at: .zero)
        let devices = ["far", "near"].map { LeasedDevice(name: $0, address: $0) }
        _ = machine.handle(.configured(devices), at: .zero)
        let rows = devices.map { device in
            var row = LeaseRow(address: device.address, epoch: 7)
            (row.owner, row.isReleased, row.remaining) = ("east", false, .seconds(30))
            row.bids = [LeaseRow.Bid(LeaseBid(gateway: "east", standing: .linked), age: .zero)]
            return row
        }
        for step in 1...20 {
            let now = Duration.milliseconds(250 * step)
            _ = machine.handle(.heard(device: "near", adapter: "hci0", rssi: -40), at: now)
            for case .exchange(_, let ticket) in machine.handle(.tick, at: now) {
                _ = machine.handle(.answered(ticket: ticket, rows), at: now)
            }
        }
        var requests: [LeaseRequest] = []
        for case .exchange(let last, _) in machine.handle(.stop(releases: true), at: .seconds(6)) { requests += last }
        #expect(requests.map(\.device) == ["near"], "it has no bid for the other one")
        #expect(requests.map(\.operation) == [.observe])
        #expect(requests.map(\.bid) == [LeaseBid(gateway: "west", standing: .gone)])
        #expect(requests.allSatisfy { $0.isBidDue })
    }
}
