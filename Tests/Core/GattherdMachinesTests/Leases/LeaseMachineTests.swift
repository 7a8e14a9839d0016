import GattherdMachines
import Testing

@Suite struct LeaseMachineTests {
    private func world(_ devices: LeaseWorld.Device..., seed: UInt64 = 1) -> LeaseWorld {
        LeaseWorld([("west", 0), ("east", 50)], devices, seed: seed)
    }

    @Test func `the gateway that hears a device best claims it and connects it`() {
        var world = world(.strap(at: 40))
        world.run(.seconds(20))
        #expect(world.devices[0].link == 1)
        let owner = world.gateways[1]
        #expect(owner.machine.status(of: "strap", at: world.now + owner.clockOffset)?.role == .owner)
        #expect(world.claims["strap"] == ["east"])
        let other = world.gateways[0]
        #expect(other.machine.withdrawal(of: "strap") == "owned by gateway east")
        #expect(!other.machine.isAdmitted("strap"))
    }

    @Test func `a lease lasts as long as its owner is there, without hand-overs`() {
        var world = world(.strap(at: 20))
        world.run(.seconds(300))
        #expect(world.claims["strap"] == ["west"])
        #expect(world.centre.leases["A-strap"]?.epoch == 1)
    }

    @Test func `a device that is configured for another gateway is never claimed`() {
        var world = world(.strap(at: 22, gateways: ["east"]))
        world.run(.seconds(20))
        #expect(world.devices[0].link == 1)
        #expect(world.claims["strap"] == ["east"])
    }

    @Test func `a gateway without a free slot leaves the device to another one`() {
        var world = world(.strap(at: 22))
        world.gateways[0].isFull = true
        world.run(.seconds(10))
        #expect(world.devices[0].link == 1)
        let status = world.gateways[0].machine.status(of: "strap", at: world.now + world.gateways[0].clockOffset)
        #expect(status?.bids.first { $0.gateway == "west" }?.problem == "no adapter has a free slot")
    }

    @Test func `a walking strap is handed over within three seconds`() throws {
        var times: [Duration] = []
        for seed in UInt64(1)...12 {
            var world = world(.strap(at: 0), seed: seed)
            // 100 m/min, from gateway to gateway and beyond both reaches' ends.
            world.run(.seconds(600)) { world in
                let round = (world.now / .seconds(60)).truncatingRemainder(dividingBy: 2)
                world.devices[0].place = (round < 1 ? round : 2 - round) * 100 - 25
            }
            #expect(Set(world.claims["strap"] ?? []).count == 2)
            times += world.handovers.map { $0.linked - $0.decided }
        }
        let sorted = times.sorted()
        try #require(sorted.count > 100)
        #expect(sorted[sorted.count * 99 / 100] < .seconds(3), "\(sorted.suffix(5))")
    }

    @Test func `a link that a walking strap loses is made by the next gateway within three seconds`() throws {
        var times: [Duration] = []
        for seed in UInt64(1)...12 {
            var world = world(.strap(at: 0), seed: seed)
            var lost: (time: Duration, gateway: Int)?
            var last: Int?
            world.tick = .milliseconds(50)
            // 60 m/min between two gateways whose reaches overlap.
            world.run(.seconds(600)) { world in
                let round = (world.now / .seconds(60)).truncatingRemainder(dividingBy: 2)
                world.devices[0].place = (round < 1 ? round : 2 - round) * 60 - 5
                let link = world.devices[0].link
                if let last, link == nil { lost = (world.now, last) }
                if let link, let loss = lost, loss.gateway != link { times.append(world.now - loss.time) }
                if link != nil { lost = nil }
                last = link
            }
        }
        let sorted = times.sorted()
        try #require(sorted.count > 60)
        #expect(sorted[sorted.count / 2] < .milliseconds(2500))
        #expect(sorted[sorted.count * 99 / 100] < .seconds(3), "\(sorted.suffix(5))")
    }

    @Test func `straps that run among three gateways get their next link within three seconds`() throws {
        let devices = (0..<8).map {
            LeaseWorld.Device.strap("s\($0)", at: Self.place($0, at: 0), every: .milliseconds(200))
        }
        var world = LeaseWorld([("west", 0), ("middle", 40), ("east", 80)], devices, seed: 1)
        (world.exponent, world.tick, world.connectTime) = (2, .milliseconds(50), 100...300)
        var (losses, last): ([Int: (time: Duration, gateway: Int)], [Int: Int]) = ([:], [:])
        var times: [Duration] = []
        world.run(.seconds(160)) { world in
            for index in devices.indices {
                world.devices[index].place = Self.place(index, at: world.now / .seconds(1))
                let link = world.devices[index].link
                if link == nil, let gateway = last[index] { losses[index] = (world.now, gateway) }
                if let link, let loss = losses.removeValue(forKey: index), loss.gateway != link {
                    times.append(world.now - loss.time)
                }
                last[index] = link
            }
        }
        let sorted = times.sorted()
        try #require(sorted.count > 40)
        #expect(sorted[sorted.count / 2] < .seconds(2))
        #expect(sorted[sorted.count - 1] < .seconds(3), "\(sorted.suffix(5))")
    }

    /// The place of a strap that stays at a gateway for 10 s, and runs to the next one in 10 s.
    private static func place(_ number: Int, at time: Double) -> Double {
        let (step, rest) = (Int(time / 20), time.truncatingRemainder(dividingBy: 20))
        let places = [step, step + 1].map { [0.0, 40, 80, 40][(number + $0) % 4] }
        return places[0] + (places[1] - places[0]) * max(0, rest - 10) / 10
    }

    @Test func `a device goes only to the gateways that the centre has for it, whatever a configuration says`() {
        var world = world(.strap(at: 22, gateways: ["east"]))
        world.run(.seconds(20))
        let wrong = LeasedDevice(name: "strap", address: "A-strap")
        let time = world.now + world.gateways[0].clockOffset
        _ = world.gateways[0].machine.handle(.configured([wrong]), at: time)
        world.devices[0].place = 0
        world.gateways[1].sides = [:]
        world.devices[0].link = nil
        world.run(.seconds(120))
        #expect(world.claims["strap"] == ["east"])
        let status = world.gateways[0].machine.status(of: "strap", at: world.now + world.gateways[0].clockOffset)
        #expect(status?.bids.first { $0.gateway == "west" }?.problem == "the centre reserves it for east")
    }

    @Test func `a centre that has lost the list of gateways gets it again`() {
        var world = world(.strap(at: 22, gateways: ["east", "west"]))
        world.centre.replicate()
        world.run(.seconds(20))
        #expect(world.centre.gateways["A-strap"] == ["east", "west"])
        world.failOver()
        #expect(world.centre.gateways["A-strap"] == nil)
        world.run(.seconds(20))
        #expect(world.centre.gateways["A-strap"] == ["east", "west"])
    }

    @Test func `a link that is ending does not keep another gateway from the lease`() {
        var world = world(.strap(at: 0))
        world.run(.seconds(10))
        let time = world.now + world.gateways[0].clockOffset
        _ = world.gateways[0].machine.handle(.link(device: "strap", .ending), at: time)
        let bids = world.gateways[0].machine.status(of: "strap", at: time)?.bids ?? []
        #expect(bids.first { $0.gateway == "west" }?.standing == .heard)
    }

    @Test func `the cause of a hand-over is reported`() {
        var world = world(.strap(at: 0))
        world.run(.seconds(10))
        world.devices[0].place = 50
        world.run(.seconds(20))
        #expect(world.claims["strap"] == ["west", "east"])
        #expect(world.causes["strap"]?.count == 1)
    }

    @Test func `the lease of a gateway that has crashed goes to another one when it expires`() {
        var world = world(.strap(at: 20))
        world.run(.seconds(10))
        #expect(world.devices[0].link == 0)
        world.gateways[0].isCut = true
        world.restart(0)
        world.run(.seconds(20)) { $0.gateways[0].nextTick = .seconds(1000) }
        #expect(world.devices[0].link == nil)
        world.run(.seconds(25)) { $0.gateways[0].nextTick = .seconds(1000) }
        #expect(world.devices[0].link == 1)
        #expect(world.centre.leases["A-strap"]?.epoch == 2)
    }

    @Test func `a gateway that restarts takes its device back at once, with another epoch`() {
        var world = world(.strap(at: 20))
        world.run(.seconds(10))
        world.restart(0)
        world.run(.seconds(5))
        #expect(world.devices[0].link == 0)
        #expect(world.centre.leases["A-strap"]?.epoch == 2)
    }

    @Test func `without the centre a gateway keeps its link, but may not be controlled from afar`() {
        var world = world(.strap(at: 20))
        world.run(.seconds(10))
        world.centre.isDown = true
        world.run(.seconds(60))
        let gateway = world.gateways[0]
        #expect(world.devices[0].link == 0)
        #expect(gateway.machine.isAdmitted("strap"))
        #expect(!gateway.machine.isCurrent("strap", at: world.now + gateway.clockOffset))
        world.centre.isDown = false
        world.run(.seconds(15))
        #expect(world.devices[0].link == 0)
        #expect(world.centre.leases["A-strap"]?.epoch == 1)
        #expect(world.gateways[0].machine.isCurrent("strap", at: world.now + world.gateways[0].clockOffset))
    }

    @Test func `a gateway that was suspended asks the centre before it connects devices of its own`() {
        var world = world(.strap(at: 50, gateways: ["west", "east"]))
        world.run(.seconds(20))
        #expect(world.devices[0].link == 1)
        world.suspend(0, for: .seconds(60))
        world.run(.seconds(70)) { world in #expect(!world.gateways[0].machine.isAdmitted("strap")) }
        #expect(world.devices[0].link == 1)
    }

    @Test func `a gateway counts as the owner only until its lease ends`() {
        var world = world(.strap(at: 20))
        world.run(.seconds(10))
        #expect(world.gateways[0].machine.isCurrent("strap", at: world.now + world.gateways[0].clockOffset))
        world.centre.isDown = true
        world.run(.seconds(60)) { world in
            let (machine, time) = (world.gateways[0].machine, world.now + world.gateways[0].clockOffset)
            let isOwner = machine.status(of: "strap", at: time)?.role == .owner
            #expect(isOwner == machine.isCurrent("strap", at: time))
        }
    }

    @Test func `without the centre a gateway connects its own devices and those that it owned last`() {
        var world = world(.strap("own", at: 10, gateways: ["west", "east"]), .strap("other", at: 10))
        world.centre.isDown = true
        world.run(.seconds(30))
        #expect(world.devices[0].link == 0)
        #expect(world.devices[1].link == nil)
        world.centre.isDown = false
        world.run(.seconds(30))
        #expect(world.devices.map(\.link) == [0, 0])
        #expect(world.claims["own"] == ["west"])
        world.centre.isDown = true
        // A moment out of reach, in which the link is lost.
        world.devices[1].place = 1000
        world.run(.seconds(40))
        world.devices[1].place = 10
        world.run(.seconds(10))
        #expect(world.devices[1].link == 0)
        world.restart(0)
        world.run(.seconds(20))
        #expect(world.devices.map(\.link) == [0, 0])
    }

    @Test func `a device that a person has disconnected at its owner is connected by no other gateway`() {
        var world = world(.strap(at: 20))
        world.run(.seconds(10))
        world.gateways[0].held = ["strap"]
        world.gateways[0].sides["strap"] = .withdrawn
        world.devices[0].link = nil
        world.run(.seconds(120))
        #expect(world.devices[0].link == nil)
        #expect(world.claims["strap"] == ["west"])
    }

    @Test func `a gateway that stops releases its leases, so that another one needs not wait`() {
        var world = world(.strap(at: 20))
        world.run(.seconds(10))
        let time = world.now + world.gateways[0].clockOffset
        let effects = world.gateways[0].machine.handle(.stop(releases: true), at: time)
        guard case .exchange(let requests, _)? = effects.first else {
            Issue.record("nothing was released")
            return
        }
        #expect(requests.map(\.operation) == [.release(epoch: 1)])
        _ = world.centre.exchange(requests, from: "west", at: world.now)
        world.devices[0].link = nil
        world.gateways[0].sides = [:]
        world.run(.seconds(5))
        #expect(world.devices[0].link == 1)
    }

    @Test func `an idle fleet asks the centre every two seconds`() {
        var world = world(.strap(at: 20))
        world.run(.seconds(20))
        let before = world.exchanges
        world.run(.seconds(100))
        #expect(world.exchanges - before <= 110)
    }
}
