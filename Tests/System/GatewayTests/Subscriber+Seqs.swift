import TestKit

extension Subscriber {
    /// The readings' numbers, in the order in which they came.
    var seqs: [Int] {
        messages.compactMap { message in
            message.payload.hasPrefix("{\"seq\":") ? Int(message.payload.dropFirst(7).prefix { $0.isNumber }) : nil
        }
    }
}
