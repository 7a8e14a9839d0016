import GattherdDBus

/// The failures that were ordered for the next calls of some methods.
struct FaultList: Hashable, Sendable {
    enum Fault: Hashable, Sendable {
        case error(DBusError)
        /// The call is never answered.
        case noReply
    }

    private struct Order: Hashable, Sendable {
        let method: String
        let fault: Fault
        var times: Int
    }

    private var orders: [Order] = []

    mutating func order(_ fault: Fault, of method: String, times: Int) {
        guard times > 0 else { return }
        orders.append(Order(method: method, fault: fault, times: times))
    }

    /// The fault for this call, if one was ordered.
    mutating func take(_ method: String) -> Fault? {
        guard let index = orders.firstIndex(where: { $0.method == method }) else { return nil }
        orders[index].times -= 1
        let fault = orders[index].fault
        if orders[index].times == 0 { orders.remove(at: index) }
        return fault
    }
}
