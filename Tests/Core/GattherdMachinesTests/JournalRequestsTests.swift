import Testing

@testable import GattherdMachines

struct JournalRequestsTests {
    private var requests = JournalRequests(options: DeliveryMachine.Options())
    private let window = DeliveryWindow(cursor: 0)

    @Test mutating func `the first head is the existing journal and later ones count commits`() {
        #expect(requests.headMoved(to: 40) == 0)
        #expect(requests.headMoved(to: 45) == 5)
        #expect(requests.headMoved(to: 44) == 0)
        #expect(requests.head == 45)
        #expect(requests.mayBeFromEarlierRun(40) && !requests.mayBeFromEarlierRun(41))
    }

    @Test mutating func `one fetch is pending at a time`() {
        #expect(requests.fetch(into: window, at: .zero).isEmpty, "no head is known")
        _ = requests.headMoved(to: 3)
        #expect(requests.fetch(into: window, at: .zero) == [.fetch(after: 0, limit: 256)])
        #expect(requests.fetch(into: window, at: .zero).isEmpty)
        let (isExpected, isExpectedAgain) = (requests.fetched(), requests.fetched())
        #expect(isExpected && !isExpectedAgain)
    }

    @Test mutating func `a failed request is repeated after the pause`() {
        _ = requests.headMoved(to: 3)
        #expect(requests.fetch(into: window, at: .zero).count == 1)
        requests.failed(.fetch, at: .zero)
        #expect(requests.fetchDeadline(into: window) == .seconds(1))
        #expect(requests.fetch(into: window, at: .milliseconds(999)).isEmpty)
        #expect(requests.fetch(into: window, at: .seconds(1)).count == 1)
        requests.failed(.load, at: .seconds(1))
        #expect(requests.load(at: .milliseconds(1999)).isEmpty)
        #expect(requests.load(at: .seconds(2)) == [.loadCursor])
        #expect(requests.load(at: .seconds(3)).isEmpty, "a load is pending")
    }

    @Test mutating func `few readings wait for the save interval and many are saved at once`() {
        #expect(requests.save(1, at: .zero) == [.save(1)])
        requests.saved(1)
        #expect(requests.save(1, at: .seconds(1)).isEmpty, "it is saved")
        #expect(requests.save(2, at: .milliseconds(249)).isEmpty)
        #expect(requests.save(251, at: .milliseconds(249)) == [.save(251)])
        #expect(requests.save(600, at: .seconds(9)).isEmpty, "a save is pending")
    }

    @Test mutating func `the last save waits for the one before`() {
        #expect(requests.saveLast(0) == nil)
        #expect(requests.save(1, at: .zero) == [.save(1)])
        #expect(requests.saveLast(2) == [])
        requests.saved(1)
        #expect(requests.saveLast(2) == [.save(2)])
        requests.saved(2)
        #expect(requests.saveLast(2) == nil)
    }
}
