/// A scheduled timer, until it fires.
public struct LoopTimer: Hashable, Sendable {
    let id: UInt64
}

/// A priority queue of actions by deadline: a binary heap from which cancelled entries are removed lazily.
struct TimerQueue {
    typealias Instant = SuspendingClock.Instant

    private struct Entry {
        let deadline: Instant
        let id: UInt64

        /// Returns true if this entry is due first; equal deadlines are due in the order of insertion.
        func precedes(_ other: Entry) -> Bool {
            deadline == other.deadline ? id < other.id : deadline < other.deadline
        }
    }

    private var heap: [Entry] = []
    private var actions: [UInt64: () -> Void] = [:]
    /// The id of the next timer.
    private(set) var nextID: UInt64 = 0

    /// The number of active timers.
    var count: Int { actions.count }

    mutating func insert(_ deadline: Instant, _ action: @escaping () -> Void) -> UInt64 {
        let id = nextID
        nextID += 1
        actions[id] = action
        push(Entry(deadline: deadline, id: id))
        return id
    }

    mutating func remove(_ id: UInt64) {
        guard actions.removeValue(forKey: id) != nil else { return }
        guard heap.count > 2 * actions.count + 64 else { return }
        let alive = heap.filter { actions[$0.id] != nil }
        heap.removeAll(keepingCapacity: true)
        for entry in alive { push(entry) }
    }

    mutating func removeAll() {
        heap.removeAll()
        actions.removeAll()
    }

    /// Returns the earliest deadline.
    mutating func nextDeadline() -> Instant? {
        dropCancelled()
        return heap.first?.deadline
    }

    /// Returns the nanoseconds until the earliest deadline, rounded up so that no timer fires early; -1 without one.
    mutating func nanosecondsUntilNext() -> Int64 {
        guard let deadline = nextDeadline() else { return -1 }
        let (seconds, attoseconds) = (deadline - SuspendingClock.now).components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        // A later timer is found at the next turn; the limit keeps the product below from overflowing.
        guard seconds < 2_000_000 else { return 2_000_000_000_000_000 }
        return seconds * 1_000_000_000 + (attoseconds + 999_999_999) / 1_000_000_000
    }

    /// Removes and returns the earliest action that is due at `now`, among timers older than `limit`.
    mutating func removeDue(at now: Instant, before limit: UInt64) -> (() -> Void)? {
        dropCancelled()
        guard let first = heap.first, first.deadline <= now, first.id < limit else { return nil }
        pop()
        return actions.removeValue(forKey: first.id)
    }

    private mutating func dropCancelled() {
        while let first = heap.first, actions[first.id] == nil { pop() }
    }

    private mutating func push(_ entry: Entry) {
        heap.append(entry)
        var child = heap.count - 1
        while child > 0, heap[child].precedes(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private mutating func pop() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while let child = smallerChild(of: parent), heap[child].precedes(heap[parent]) {
            heap.swapAt(parent, child)
            parent = child
        }
    }

    private func smallerChild(of parent: Int) -> Int? {
        let left = 2 * parent + 1
        let right = left + 1
        guard left < heap.count else { return nil }
        return right < heap.count && heap[right].precedes(heap[left]) ? right : left
    }
}
