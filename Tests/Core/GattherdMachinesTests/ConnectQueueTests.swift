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

    /// Returns the next turn, with the same adapter for every device.
    private func next(_ queue: inout ConnectQueue, at now: Duration, on adapter: BluetoothAddress? = nil) -> String? {
        queue.next(at: now, adapters: [one, other]) { _ in adapter ?? one }?.device
    }

    @Test func `an attempt blocks the next until it ends or exceeds the timeout`() {
        var queue = ConnectQueue(timeout: .seconds(1))
        for name in ["a", "b", "c"] { queue.add(name, failures: 0, at: .zero) }
        #expect(next(&queue, at: .zero) == "a")
        #expect(next(&queue, at: .milliseconds(999)) == nil)
        #expect(queue.deadline(after: .milliseconds(999)) == .seconds(1))
        #expect(next(&queue, at: .seconds(1)) == "b")
        queue.remove("b")
        #expect(next(&queue, at: .seconds(1)) == "c")
        #expect(queue.connecting == ["a", "c"])
        #expect(queue.deadline(after: .seconds(1)) == nil, "no device waits")
    }

    @Test func `the number of attempts past the timeout is bounded`() {
        var queue = ConnectQueue(timeout: .zero, limit: 100)
        for number in 1...40 { queue.add("d\(number)", failures: 0, at: .zero) }
        while next(&queue, at: .seconds(1)) != nil {}
        #expect(queue.attempts(on: one) == 20)
        #expect(next(&queue, at: .seconds(1), on: other) != nil)
    }

    @Test func `the number of attempts on all adapters together is bounded`() {
        var queue = ConnectQueue(timeout: .zero, limit: 100)
        let places = Dictionary(uniqueKeysWithValues: (1...40).map { ("d\($0)", $0.isMultiple(of: 2) ? one : other) })
        for name in places.keys.sorted() { queue.add(name, failures: 0, at: .zero) }
        while queue.next(at: .seconds(1), adapters: [one, other], place: { places[$0] }) != nil {}
        #expect(queue.connecting.count == 32)
        for name in queue.connecting.sorted().prefix(1) { queue.remove(name) }
        #expect(queue.next(at: .seconds(1), adapters: [one, other], place: { places[$0] }) != nil)
    }

    @Test func `a device is queued once and removed completely`() {
        var queue = ConnectQueue()
        queue.add("a", failures: 0, at: .zero)
        queue.add("a", failures: 0, at: .zero)
        queue.remove("a")
        #expect(queue.isEmpty)
        queue.add("a", failures: 0, at: .zero)
        #expect(next(&queue, at: .zero) == "a")
        queue.add("a", failures: 0, at: .zero)
        #expect(queue.isEmpty, "it has its turn already")
    }

    @Test func `adapters do not wait for each other, and blocked devices do not block others`() {
        var queue = ConnectQueue()
        for name in ["a", "b", "c", "d"] { queue.add(name, failures: 0, at: .zero) }
        let places = ["a": one, "b": one, "c": other]
        var turns: [ConnectQueue.Turn] = []
        while let turn = queue.next(at: .zero, adapters: [one, other], place: { places[$0] }) { turns.append(turn) }
        #expect(turns.map(\.device) == ["a", "c"])
        #expect(turns.map(\.adapter) == [one, other])
        #expect(queue.attempts(on: one) == 1)
    }

    @Test func `failing devices are overtaken by slightly later requests, but not forever`() {
        var queue = ConnectQueue()
        queue.add("bad", failures: 20, at: .zero)
        queue.add("good", failures: 1, at: .seconds(9))
        queue.add("late", failures: 0, at: .seconds(11))
        var order: [String] = []
        while let name = next(&queue, at: .seconds(11)) {
            order.append(name)
            queue.remove(name)
        }
        #expect(order == ["good", "bad", "late"])
    }

    @Test func `absent devices that fill an adapter delay only devices that failed`() {
        var queue = ConnectQueue(timeout: .zero, limit: 2)
        for name in ["x", "y", "z"] { queue.add(name, failures: 3, at: .zero) }
        #expect(next(&queue, at: .seconds(1)) == "x")
        #expect(next(&queue, at: .seconds(2)) == "y")
        #expect(next(&queue, at: .seconds(3)) == nil)
        queue.add("new", failures: 0, at: .seconds(3))
        #expect(next(&queue, at: .seconds(3)) == "new")
        #expect(next(&queue, at: .seconds(3), on: other) == "z")
    }
}
