import GattherdMachines
import GattherdModel
import Testing

@Suite("DeliveryMachine, when both sides crash")
struct DeliveryCrashWalkTests {
    /// A broker that acknowledges at once, passes on a little later, and forgets with a crash what it has not passed on.
    private struct Broker {
        /// The longest time until it passes on, in milliseconds.
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
        "Readings that a broker acknowledged and forgot arrive all the same, in order",
        arguments: 1...10 as ClosedRange<UInt64>
    )
    func brokerCrashes(seed: UInt64) {
        walk(Broker(delay: 1900), areKilled: false, seed)
    }

    @Test(
        "They arrive also when the gateway is killed, if the broker passes on at once",
        arguments: 1...10 as ClosedRange<UInt64>
    )
    func bothCrash(seed: UInt64) {
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
        settle(&world, &broker, &random)
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

    private func settle(_ world: inout DeliveryTestWorld, _ broker: inout Broker, _ random: inout SplitMix64) {
        for _ in 0..<10_000 where world.stored != world.committed.last?.seq ?? 0 {
            world.answerAll()
            broker.take(from: &world, &random)
            world.wait()
        }
        broker.passOn(at: world.now + .seconds(2))
    }
}
