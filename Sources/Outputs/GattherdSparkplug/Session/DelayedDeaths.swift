/// The devices whose link was lost, until their deaths are published.
///
/// The delay lets the last values of a link arrive before the death.
struct DelayedDeaths: Sendable {
    private let delay: Duration
    private var times: [String: Duration] = [:]

    init(delay: Duration) {
        self.delay = delay
    }

    var devices: Set<String> { Set(times.keys) }

    /// The time of the next death.
    var deadline: Duration? { times.values.min() }

    mutating func add(_ device: String, at now: Duration) {
        times[device] = now + delay
    }

    mutating func cancel(_ device: String) {
        times[device] = nil
    }

    mutating func removeAll() {
        times.removeAll()
    }

    /// Removes the devices whose deaths are due, and returns them in the order of their names.
    mutating func removeDue(at now: Duration) -> [String] {
        let due = times.filter { now >= $0.value }.keys.sorted()
        for device in due { times[device] = nil }
        return due
    }
}
