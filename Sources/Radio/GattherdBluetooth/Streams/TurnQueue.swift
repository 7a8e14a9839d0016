/// The order of operations: one at a time, first in first out.
///
/// While the queue is reserved, only privileged tickets get a turn; the others keep their places.
struct TurnQueue<Ticket: AnyObject & Sendable>: Sendable {
    private struct Entry: Sendable {
        let ticket: Ticket
        let isPrivileged: Bool
    }

    private var waiting: [Entry] = []
    /// The ticket that has its turn.
    private var current: Ticket?
    private var isReserved = false

    /// All tickets, the current one first.
    var tickets: [Ticket] { (current.map { [$0] } ?? []) + waiting.map(\.ticket) }

    /// Adds a ticket; returns true if its turn begins at once.
    mutating func enter(_ ticket: Ticket, isPrivileged: Bool) -> Bool {
        waiting.append(Entry(ticket: ticket, isPrivileged: isPrivileged))
        return next() === ticket
    }

    /// Removes a ticket; returns the ticket whose turn begins.
    mutating func leave(_ ticket: Ticket) -> Ticket? {
        if current === ticket { current = nil } else { waiting.removeAll { $0.ticket === ticket } }
        return next()
    }

    /// Reserves the queue for privileged tickets; the current ticket keeps its turn.
    mutating func reserve() {
        isReserved = true
    }

    /// Opens the queue for all tickets; returns the ticket whose turn begins.
    mutating func open() -> Ticket? {
        isReserved = false
        return next()
    }

    private mutating func next() -> Ticket? {
        guard current == nil, let index = waiting.firstIndex(where: { $0.isPrivileged || !isReserved }) else {
            return nil
        }
        current = waiting.remove(at: index).ticket
        return current
    }
}
