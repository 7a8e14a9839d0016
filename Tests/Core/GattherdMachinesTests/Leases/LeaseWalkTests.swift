import Foundation
import GattherdMachines
import Testing

@Suite struct LeaseWalkTests {
    /// The number of days without movement.
    private static let days = ProcessInfo.processInfo.environment["GATTHERD_DAYS"].flatMap { UInt64($0) } ?? 1

    @Test(arguments: UInt64(1)...6)
    func `in every sequence of faults no epoch has two owners and no device stays without one`(seed: UInt64) {
        let devices: [LeaseWorld.Device] = [
            .strap("a", at: 0), .strap("b", at: 25), .strap("c", at: 60, gateways: ["east", "middle"]), .tag(at: 30),
        ]
        var world = LeaseWorld([("west", 0), ("middle", 30), ("east", 60)], devices, seed: seed)
        var random = SplitMix64(seed: seed &* 7919)
        world.run(.seconds(400)) { world in disturb(&world, &random) }
        world.centre.isDown = false
        for number in world.gateways.indices {
            (world.gateways[number].isCut, world.gateways[number].isFull) = (false, false)
            world.gateways[number].held = []
        }
        for index in world.devices.indices { world.devices[index].place = 30 }
        // A pause after a failure lasts five minutes.
        world.run(.seconds(420))
        for device in world.devices where device.settings.isConnectable {
            #expect(device.link != nil, "\(device.settings.name) has no link at the end")
        }
        #expect(world.centre.leases["A-tag"]?.isReleased == false)
    }

    private func disturb(_ world: inout LeaseWorld, _ random: inout SplitMix64) {
        guard Int.random(in: 0..<40, using: &random) == 0 else { return }
        let number = Int.random(in: world.gateways.indices, using: &random)
        let device = Int.random(in: world.devices.indices, using: &random)
        let name = world.devices[device].settings.name
        switch Int.random(in: 0..<10, using: &random) {
        case 0: world.gateways[number].isCut.toggle()
        case 1: world.restart(number)
        case 2: world.centre.isDown.toggle()
        case 3: world.gateways[number].isFull.toggle()
        case 4 where world.gateways[number].held.contains(name): world.gateways[number].held.remove(name)
        case 4: hold(name, at: number, &world)
        default: world.devices[device].place = Double.random(in: -30...90, using: &random)
        }
    }

    private func hold(_ name: String, at number: Int, _ world: inout LeaseWorld) {
        world.gateways[number].held.insert(name)
        let index = world.devices.firstIndex { $0.settings.name == name }
        guard let index, world.devices[index].link == number else { return }
        world.devices[index].link = nil
        world.gateways[number].sides[name] = LeaseWorld.Side.none
    }

    @Test(arguments: [Duration.seconds(-7200), .seconds(40), .seconds(86_400 * 365)])
    func `a clock of the centre that jumps repeats no epoch, and the fleet recovers`(jump: Duration) {
        var world = LeaseWorld([("west", 0), ("east", 50)], [.strap(at: 20), .tag(at: 25)], seed: 3)
        world.run(.seconds(30))
        world.centre.clockOffset = jump
        world.run(.seconds(60))
        #expect(world.devices[0].link == 0)
        world.devices[0].place = 50
        world.run(.seconds(60))
        #expect(world.devices[0].link != nil)
    }

    @Test func `after the centre's clock was set back, the last bid of a crashed gateway blocks no other gateway`() {
        var world = LeaseWorld([("west", 0), ("east", 50)], [.strap(at: 20)], seed: 4)
        world.run(.seconds(10))
        #expect(world.devices[0].link == 0)
        world.gateways[0].isCut = true
        world.restart(0)
        world.centre.clockOffset = .seconds(-7200)
        world.run(.seconds(60)) { $0.gateways[0].nextTick = .seconds(1000) }
        #expect(world.devices[0].link == 1)
    }

    @Test(arguments: UInt64(1)...8)
    func `after the centre was away, devices that only advertise stay with their owners`(seed: UInt64) {
        let places = [("west", 0.0), ("middle", 25), ("east", 50)]
        var world = LeaseWorld(places, [.tag("a", at: 12), .tag("b", at: 38)], seed: seed)
        world.run(.seconds(60))
        let first = world.claims
        world.centre.isDown = true
        world.run(.seconds(15 + Int(seed) * 15))
        world.centre.isDown = false
        world.run(.seconds(60))
        #expect(world.claims == first)
    }

    @Test func `after the centre was away, a device whose owner is gone gets another one`() {
        var world = LeaseWorld([("west", 0), ("east", 25)], [.tag(at: 2)], seed: 5)
        world.run(.seconds(20))
        #expect(world.claims["tag"] == ["west"])
        world.centre.isDown = true
        world.run(.seconds(60))
        world.centre.isDown = false
        world.run(.seconds(40)) { $0.gateways[0].nextTick = .seconds(1000) }
        #expect(world.claims["tag"] == ["west", "east"])
    }

    @Test(arguments: UInt64(1)...2)
    func `noise and short losses of the link cause no hand-over of a device that stays in its place`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let straps = (0..<6).map { number in
            LeaseWorld.Device.strap("s\(number)", at: Double.random(in: number < 3 ? 0...22 : 28...50, using: &random))
        }
        var world = LeaseWorld([("west", 0), ("east", 50)], straps, seed: seed)
        (world.noise, world.connectTime) = (5, 300...2000)
        world.run(.seconds(60))
        world.run(.seconds(3600)) { world in
            // Each link is lost every ten minutes.
            guard world.now.components.seconds % 100 == 0, world.now.components.attoseconds == 0 else { return }
            world.dropLink(of: Int(world.now.components.seconds / 100) % 6)
        }
        for strap in straps { #expect(world.claims[strap.settings.name]?.count == 1) }
    }

    @Test(arguments: 0..<days)
    func `in a day without movement nothing is handed over, although bodies pass in between`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let devices: [LeaseWorld.Device] = [
            .strap("a", at: 12), .strap("b", at: 38), .tag("c", at: 2), .tag("d", at: 34), .tag("e", at: 16),
        ]
        var world = LeaseWorld([("west", 0), ("east", 50)], devices, seed: seed)
        world.noise = 5
        world.run(.seconds(60))
        let first = world.claims
        world.tick = .seconds(2)
        world.run(.seconds(86_400), step: .seconds(1)) { world in
            let index = Int.random(in: devices.indices, using: &random)
            if Int.random(in: 0..<20, using: &random) == 0 {
                let isShaded = Bool.random(using: &random)
                world.devices[index].shade[index % 2] = isShaded ? Double.random(in: 2...10, using: &random) : nil
            }
            if Int.random(in: 0..<1800, using: &random) == 0 { world.dropLink(of: index) }
        }
        #expect(world.claims == first)
    }
}
