import GattherdGATT
import GattherdMachines
import Testing

@Suite struct ConnectQueueTests {
    private let one: BluetoothAddress
    private let other: BluetoothAddress

    init() throws {
        one = try #require(BluetoothAddress("00:00:00:00:00:01"))
        other = try #require(BluetoothAddress("00:00:00:00:00:02"))
    }

    /// The next turn, where every device may use only one adapter.
    private func next(_ queue: inout ConnectQueue, now: Duration, on adapter: BluetoothAddress? = nil) -> String? {
        queue.next(now: now, adapters: [one, other]) { _ in adapter ?? one }?.device
    }

    @Test("An attempt blocks the next until it ends or its patience is over")
    func patience() {
        var queue = ConnectQueue(patience: .seconds(1))
        for name in ["a", "b", "c"] { queue.add(name, failures: 0, now: .zero) }
        #expect(next(&queue, now: .zero) == "a")
        #expect(next(&queue, now: .milliseconds(999)) == nil)
        #expect(queue.deadline(after: .milliseconds(999)) == .seconds(1))
        #expect(next(&queue, now: .seconds(1)) == "b")
        queue.remove("b")
        #expect(next(&queue, now: .seconds(1)) == "c")
        #expect(queue.connecting == ["a", "c"])
        #expect(queue.deadline(after: .seconds(1)) == nil, "nobody waits")
    }

    @Test("Attempts that take long are bounded, whoever makes them")
    func bound() {
        var queue = ConnectQueue(patience: .zero, limit: 100)
        for number in 1...40 { queue.add("d\(number)", failures: 0, now: .zero) }
        while next(&queue, now: .seconds(1)) != nil {}
        #expect(queue.attempts(on: one) == 20)
        #expect(next(&queue, now: .seconds(1), on: other) != nil)
    }

    @Test("A device is in the queue once, and leaves it altogether")
    func membership() {
        var queue = ConnectQueue()
        queue.add("a", failures: 0, now: .zero)
        queue.add("a", failures: 0, now: .zero)
        queue.remove("a")
        #expect(queue.isEmpty)
        queue.add("a", failures: 0, now: .zero)
        #expect(next(&queue, now: .zero) == "a")
        queue.add("a", failures: 0, now: .zero)
        #expect(queue.isEmpty, "it has its turn already")
    }

    @Test("Adapters do not wait for each other, and who cannot go now does not stop the others")
    func adapters() {
        var queue = ConnectQueue()
        for name in ["a", "b", "c", "d"] { queue.add(name, failures: 0, now: .zero) }
        let places = ["a": one, "b": one, "c": other]
        var turns: [ConnectQueue.Turn] = []
        while let turn = queue.next(now: .zero, adapters: [one, other], place: { places[$0] }) { turns.append(turn) }
        #expect(turns.map(\.device) == ["a", "c"])
        #expect(turns.map(\.adapter) == [one, other])
        #expect(queue.attempts(on: one) == 1)
    }

    @Test("Who keeps failing is overtaken by those who ask a little later, but not for ever")
    func handicap() {
        var queue = ConnectQueue()
        queue.add("bad", failures: 20, now: .zero)
        queue.add("good", failures: 1, now: .seconds(9))
        queue.add("late", failures: 0, now: .seconds(11))
        var order: [String] = []
        while let name = next(&queue, now: .seconds(11)) {
            order.append(name)
            queue.remove(name)
        }
        #expect(order == ["good", "bad", "late"])
    }

    @Test("Absent devices that fill an adapter keep out only those that failed themselves")
    func crowd() {
        var queue = ConnectQueue(patience: .zero, limit: 2)
        for name in ["x", "y", "z"] { queue.add(name, failures: 3, now: .zero) }
        #expect(next(&queue, now: .seconds(1)) == "x")
        #expect(next(&queue, now: .seconds(2)) == "y")
        #expect(next(&queue, now: .seconds(3)) == nil)
        queue.add("new", failures: 0, now: .seconds(3))
        #expect(next(&queue, now: .seconds(3)) == "new")
        #expect(next(&queue, now: .seconds(3), on: other) == "z")
    }
}
