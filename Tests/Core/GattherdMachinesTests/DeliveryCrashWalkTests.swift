import GattherdMachines
import GattherdModel
import Testing

@Suite struct DeliveryCrashWalkTests {
    /// A broker that acknowledges at once and forwards a little later; a crash loses whatever it has not forwarded.
    private struct Broker {
        /// The longest time until a message is forwarded, in milliseconds.
        private let delay: Int
        private var held: [(seq: Int64, due: Duration)] = []
        private(set) var passedOn: [Int64] = []

        init(delay: Int) {
            self.delay = delay
        }

        mutating func take(from world: inout DeliveryTestWorld, _ random: inout SplitMix64) {
            for seq in world.unacknowledged {
                let due = world.now + .milliseconds(Int.random(in: 0...delay, using: &random))
                held.append((seq, max(due, held.last?.due ?? .zero)))
            }
            world.acknowledge()
        }

        mutating func passOn(at now: Duration) {
            while let next = held.first, next.due <= now { passedOn.append(held.removeFirst().seq) }
        }

        mutating func crash(_ world: inout DeliveryTestWorld) {
            held = []
            world.loseConnection()
        }
    }

    @Test(
        arguments: 1...10 as ClosedRange<UInt64>
    )
    func `readings that a broker acknowledged and lost still arrive, in order`(seed: UInt64) {
        walk(Broker(delay: 1900), areKilled: false, seed)
    }

    @Test(
        arguments: 1...10 as ClosedRange<UInt64>
    )
    func `readings that a fast broker acknowledged and lost arrive, also if the gateway is killed`(seed: UInt64) {
        walk(Broker(delay: 200), areKilled: true, seed)
    }

    private func walk(_ start: Broker, areKilled: Bool, _ seed: UInt64) {
        var options = DeliveryMachine.Options()
        options.pace = TokenBucket(rate: 300)
        var (random, broker) = (SplitMix64(seed: seed), start)
        var world = DeliveryTestWorld(options, seed: seed)
        world.step(.start)
        world.step(.headMoved(0))
        for _ in 0..<1000 {
            act(on: &world, &broker, &random, areKilled: areKilled)
            broker.passOn(at: world.now)
        }
        answerAll(&world, &broker, &random)
        var seen: Set<Int64> = []
        let firsts = broker.passedOn.filter { seen.insert($0).inserted }
        #expect(firsts == world.committed.map(\.seq))
    }

    private func act(
        on world: inout DeliveryTestWorld,
        _ broker: inout Broker,
        _ random: inout SplitMix64,
        areKilled: Bool
    ) {
        switch Int.random(in: 0..<20, using: &random) {
        case 0: broker.crash(&world)
        case 1: if areKilled { world.restart() }
        case 2...5: world.commit(.random(in: 1...20, using: &random))
        case 6...10: broker.take(from: &world, &random)
        case 11...13: world.wait()
        case 14: world.now += .milliseconds(.random(in: 1...900, using: &random))
        default: world.answerAll()
        }
    }

    private func answerAll(_ world: inout DeliveryTestWorld, _ broker: inout Broker, _ random: inout SplitMix64) {
        for _ in 0..<10_000 where world.stored != world.committed.last?.seq ?? 0 {
            world.answerAll()
            broker.take(from: &world, &random)
            world.wait()
        }
        broker.passOn(at: world.now + .seconds(2))
    }
}
