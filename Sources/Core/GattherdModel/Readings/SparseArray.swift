/// An array of which few elements exist.
///
/// A format of advertisements may define hundreds of metrics, of which a device sends a few. An array with an element
/// for each metric would cost kilobytes for each device.
///
/// The members are inlinable, because history uses them for each row: a generic call into another module costs more
/// than the search.
public struct SparseArray<Element> {
    @usableFromInline
    typealias Entry = (index: Int, element: Element)

    @usableFromInline
    var storage: [Entry]

    @inlinable
    public init() { storage = [] }

    /// The elements in the order of their indices.
    @inlinable
    public var entries: [(index: Int, element: Element)] { storage }

    @inlinable
    public subscript(index: Int) -> Element? {
        let place = place(of: index)
        return has(index, at: place) ? storage[place].element : nil
    }

    @inlinable
    public mutating func set(_ element: Element, at index: Int) {
        let place = place(of: index)
        if has(index, at: place) {
            storage[place].element = element
        } else {
            storage.insert((index, element), at: place)
        }
    }

    @inlinable
    func has(_ index: Int, at place: Int) -> Bool { place < storage.count && storage[place].index == index }

    /// Returns the position of the first entry that is not before `index`.
    @inlinable
    func place(of index: Int) -> Int {
        var (low, high) = (0, storage.count)
        while low < high {
            let middle = (low + high) / 2
            if storage[middle].index < index { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension SparseArray: Sendable where Element: Sendable {}
