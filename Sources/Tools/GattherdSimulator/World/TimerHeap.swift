/// A priority queue of timed elements.
///
/// Elements of the same time keep their insertion order.
struct TimerHeap<Element: Sendable>: Sendable {
    private struct Entry {
        let due: Duration
        let order: UInt64
        let element: Element

        func isBefore(_ other: Entry) -> Bool { (due, order) < (other.due, other.order) }
    }

    /// A binary heap: the entry at index `i` is before its children at `2 * i + 1` and `2 * i + 2`.
    private var entries: [Entry] = []
    private var nextOrder: UInt64 = 0

    /// The time of the first element.
    var next: Duration? { entries.first?.due }

    mutating func insert(_ element: Element, at due: Duration) {
        entries.append(Entry(due: due, order: nextOrder, element: element))
        nextOrder += 1
        rise(entries.count - 1)
    }

    /// Removes and returns the first element that is due at `now`, with its time.
    mutating func removeDue(_ now: Duration) -> (element: Element, due: Duration)? {
        guard let first = entries.first, first.due <= now else { return nil }
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        sink(0)
        return (first.element, first.due)
    }

    private mutating func rise(_ start: Int) {
        var index = start
        while index > 0, entries[index].isBefore(entries[(index - 1) / 2]) {
            entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    private mutating func sink(_ start: Int) {
        var index = start
        while true {
            var first = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < entries.count && entries[child].isBefore(entries[first]) { first = child }
            guard first != index else { return }
            entries.swapAt(index, first)
            index = first
        }
    }
}
