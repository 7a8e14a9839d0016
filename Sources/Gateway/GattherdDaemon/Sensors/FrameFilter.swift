package import GattherdBluetooth

/// Finds the new payloads in the advertisements of one device.
package struct FrameFilter: Sendable {
    private struct SentFrame: Sendable {
        let octets: [UInt8]
        let time: SuspendingClock.Instant
    }

    private var lastSent: [AdvertisedFrames.ID: SentFrame] = [:]
    private var assembly = FrameAssembly()

    package init() {}

    /// Removes the parts of multi-part frames.
    mutating func removeParts() {
        assembly = FrameAssembly()
    }

    /// Returns the payloads of an advertisement; the same bytes are new again after the frame's `renewal`.
    package mutating func payloads(
        of advertisement: HeardAdvertisement,
        _ frames: AdvertisedFrames,
        now: SuspendingClock.Instant
    ) -> [(payload: AdvertisedFrames.Payload, isNew: Bool)] {
        assembly.payloads(of: advertisement, frames, now: now).map { payload in
            if let last = lastSent[payload.frame], last.octets == payload.octets,
                now - last.time < frames[payload.frame].renewal
            {
                return (payload, false)
            }
            lastSent[payload.frame] = SentFrame(octets: payload.octets, time: now)
            return (payload, true)
        }
    }
}
