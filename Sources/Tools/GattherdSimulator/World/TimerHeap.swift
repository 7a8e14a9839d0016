/// Things to do, each at its time; those of the same time in the order of their coming.
struct TimerHeap<Element: Sendable>: Sendable {
    private struct Entry {
        let due: Duration
        let order: UInt64
        let element: Element

        func isBefore(_ other: Entry) -> Bool { (due, order) < (other.due, other.order) }
    }

    /// A binary heap: each entry is before the two at twice its place, plus 1 and 2.
    private var entries: [Entry] = []
    private var nextOrder: UInt64 = 0

    /// When the next is due.
    var next: Duration? { entries.first?.due }

    mutating func insert(_ element: Element, at due: Duration) {
        entries.append(Entry(due: due, order: nextOrder, element: element))
        nextOrder += 1
        rise(entries.count - 1)
    }

    /// Takes the first one that is due at `now`, and the time it was due.
    mutating func takeDue(_ now: Duration) -> (element: Element, due: Duration)? {
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
