/// An array of which few elements exist.
///
/// A format of advertisements may define hundreds of metrics, of which a device sends a few. An array with an element
/// for each metric would cost kilobytes for each device.
package struct SparseArray<Element> {
    /// The elements in the order of their indices.
    package private(set) var entries: [(index: Int, element: Element)] = []

    package init() {}

    package subscript(index: Int) -> Element? {
        let place = place(of: index)
        return has(index, at: place) ? entries[place].element : nil
    }

    package mutating func set(_ element: Element, at index: Int) {
        let place = place(of: index)
        if has(index, at: place) {
            entries[place].element = element
        } else {
            entries.insert((index, element), at: place)
        }
    }

    private func has(_ index: Int, at place: Int) -> Bool { place < entries.count && entries[place].index == index }

    /// Returns the position of the first entry that is not before `index`.
    private func place(of index: Int) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].index < index { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension SparseArray: Sendable where Element: Sendable {}
