import Foundation
import GattherdMachines
import Testing

/// Fleets of random size in a random air, with faults of all kinds at random moments.
@Suite struct LeaseRandomWorldTests {
    /// The number of worlds.
    private static let worlds = ProcessInfo.processInfo.environment["GATTHERD_WORLDS"].flatMap { UInt64($0) } ?? 6

    @Test(arguments: 0..<worlds)
    func `no epoch has two owners, no control is executed under an old one, and all devices are connected again`(
        seed: UInt64
    ) {
        var random = SplitMix64(seed: seed &* 104_729 &+ 1)
        var world = Self.world(seed, &random)
        world.run(.seconds(240), step: .milliseconds(100)) { world in
            if Int.random(in: 0..<15, using: &random) == 0 { Self.disturb(&world, &random) }
        }
        Self.repair(&world)
        // A pause after a failure lasts five minutes.
        world.run(.seconds(400), step: .milliseconds(200))
        for device in world.devices where device.settings.isConnectable {
            #expect(device.link != nil, "\(device.settings.name) has no link at the end")
            #expect(
                world.centre.owner(of: device.settings.address)?.name == device.link.map { world.gateways[$0].name }
            )
        }
    }

    // MARK: - Worlds

    private static func world(_ seed: UInt64, _ random: inout SplitMix64) -> LeaseWorld {
        let names = ["attic", "barn", "cellar", "door"].prefix(Int.random(in: 2...4, using: &random))
        let places = names.map { ($0, Double.random(in: 0...60, using: &random)) }
        let devices = (0..<Int.random(in: 1...5, using: &random)).map { device($0, names, &random) }
        var world = LeaseWorld(places, devices, seed: seed)
        world.noise = Double.random(in: 0...7, using: &random)
        world.tick = .milliseconds([100, 250, 250, 1000].randomElement(using: &random) ?? 250)
        world.connectTime = 100...Int.random(in: 200...8000, using: &random)
        world.answerTime = 5...Int.random(in: 10...3000, using: &random)
        world.answerLoss = [0, 0, 0.02, 0.2].randomElement(using: &random) ?? 0
        return world
    }

    private static func device(
        _ number: Int,
        _ names: ArraySlice<String>,
        _ random: inout SplitMix64
    ) -> LeaseWorld.Device {
        let place = Double.random(in: -20...80, using: &random)
        if Int.random(in: 0..<4, using: &random) == 0 { return .tag("tag-\(number)", at: place) }
        let allowed = names.shuffled(using: &random).prefix(Int.random(in: 1...names.count, using: &random))
        let isLimited = Int.random(in: 0..<3, using: &random) == 0
        var device = LeaseWorld.Device.strap("s\(number)", at: place, gateways: isLimited ? Array(allowed) : nil)
        device.interval = .milliseconds([100, 500, 1000, 5000].randomElement(using: &random) ?? 500)
        return device
    }

    private static func disturb(_ world: inout LeaseWorld, _ random: inout SplitMix64) {
        let number = Int.random(in: world.gateways.indices, using: &random)
        let device = Int.random(in: world.devices.indices, using: &random)
        switch Int.random(in: 0..<14, using: &random) {
        case 0: world.gateways[number].isCut.toggle()
        case 1: world.restart(number)
        case 2: world.centre.isDown.toggle()
        case 3: world.gateways[number].isFull.toggle()
        case 4: world.suspend(number, for: .seconds(Int.random(in: 1...50, using: &random)))
        case 5: world.centre.replicate()
        case 6: world.failOver()
        case 7, 8: world.devices[device].shade[number] = Double.random(in: 0...25, using: &random)
        case 9: world.dropLink(of: device)
        case 10: world.configure(number, without: device)
        default: world.devices[device].place = Double.random(in: -30...90, using: &random)
        }
    }

    private static func repair(_ world: inout LeaseWorld) {
        world.centre.isDown = false
        world.answerLoss = 0
        for number in world.gateways.indices {
            (world.gateways[number].isCut, world.gateways[number].isFull) = (false, false)
            world.configure(number)
        }
        for index in world.devices.indices { (world.devices[index].place, world.devices[index].shade) = (30, [:]) }
    }
}
