/// The names of a device's streams, each only once.
struct StreamNames: Sendable {
    private(set) var all: Set<String> = []
    /// The next number for each name.
    private var numbers: [String: Int] = [:]

    /// Adds a name: with a number if it is taken, or if the stream is not the first of its kind.
    mutating func add(_ wanted: String, isFirst: Bool) -> String {
        let name = isFirst && !all.contains(wanted) ? wanted : next(after: wanted)
        all.insert(name)
        return name
    }

    private mutating func next(after stream: String) -> String {
        var number = numbers[stream] ?? 2
        while all.contains("\(stream)_\(number)") { number += 1 }
        numbers[stream] = number + 1
        return "\(stream)_\(number)"
    }
}
