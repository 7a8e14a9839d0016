import GattherdModel

extension HistoryReader {
    /// How many rows are read at once.
    private static let slice = 4096

    /// Hands over what a query gives, slice by slice, until `body` returns false.
    ///
    /// - Parameters:
    ///   - statement: Gives at most ?4 rows after the place ?1, ?2, ?3, in order.
    ///   - start: The place before the first row.
    ///   - decode: Makes an element of the statement's row, and says where that row is.
    ///   - body: Takes an element; no snapshot is held meanwhile.
    /// - Throws: ``StoreFault`` when the file cannot be read.
    func slices<Element>(
        _ statement: borrowing Statement,
        from start: RowPlace,
        decode: (borrowing Statement) throws(StoreFault) -> (Element, RowPlace),
        _ body: (Element) -> Bool
    ) throws(StoreFault) {
        var place = start
        var elements: [Element] = []
        repeat {
            elements.removeAll(keepingCapacity: true)
            statement.bind(place.ts, at: 1)
            statement.bind(place.second, at: 2)
            statement.bind(place.third, at: 3)
            statement.bind(Int64(Self.slice), at: 4)
            while try statement.step() {
                let (element, next) = try decode(statement)
                elements.append(element)
                place = next
            }
            statement.reset()
            for element in elements where !body(element) { return }
        } while elements.count == Self.slice
    }
}
