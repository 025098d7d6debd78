"""Write docs/delivery-contract.md from the contract (engine/delivery/contract.py)."""

from pathlib import Path

from engine.delivery.page import page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "delivery-contract.md"

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
